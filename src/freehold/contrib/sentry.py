"""Sentry: one report for a job that has failed for good or lost its worker, none for a retry.

    sentry_sdk.init(dsn=..., traces_sample_rate=0.1)
    instrument(app)

Attempts are transactions, enqueues are spans of the transaction that they happen in, and jobs of
schedules are check-ins of Sentry's crons.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.contrib.missing_package import missing
from freehold.errors import BadInput
from freehold.extensions import EndedAttempt, Extension
from freehold.model.handler_exceptions import AttemptEnded, Cancel, Pause, Snooze
from freehold.model.job import Attempt, NewJob
from freehold.model.meta import decode_meta, encode_meta
from freehold.model.outcome import OutcomeKind
from freehold.model.schedule import ScheduleDefinition, tick_of
from freehold.model.state import State
from freehold.model.timing import Cron
from freehold.worker.execution.context import Context
from freehold.worker.execution.handler_store import NoStore

try:
    import sentry_sdk
    from sentry_sdk.crons import capture_checkin
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.scope import use_isolation_scope
    from sentry_sdk.utils import event_from_exception
except ImportError as error:
    raise missing(error, "sentry_sdk", "freehold[sentry]") from None

_ORIGIN = "auto.queue.freehold"
_TRACE_KEY, _BAGGAGE_KEY = "sentry-trace", "baggage"
#: Exceptions that are kept until the end of their attempt is stored. If a lease was lost, it never
#: is, and the oldest are dropped.
_KEPT_LIMIT = 1_000
_NO_FAILURE = (AttemptEnded, Cancel, Pause, Snooze)


def instrument(app: Freehold, *, monitor_schedules: bool = True) -> None:
    """Report the failures of one app. Call it beside the app, so that child processes do it, too.

    Log lines of the logger ``freehold`` make no reports: it logs each failure itself. The last
    call counts.
    """
    ignore_logger("freehold")
    app.tasks.extensions.replace(Sentry(app, monitor_schedules))


class _Failure(msgspec.Struct):
    """The exception of an attempt, as an event, with the scope in which it happened."""

    event: Any
    hint: Any
    scope: Any


class Sentry(Extension):
    def __init__(self, app: Freehold, monitor_schedules: bool) -> None:
        self._app = app
        self._monitor_schedules = monitor_schedules
        self._failures: OrderedDict[tuple[int, int], _Failure] = OrderedDict()
        #: Spans of enqueues by the header that is in the metadata of their jobs.
        self._publishing: dict[str, Any] = {}

    # -- enqueues ----------------------------------------------------------------------------

    def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
        current = sentry_sdk.get_current_span()
        if not jobs or not sentry_sdk.is_initialized():
            return jobs
        span = None
        if current is not None:
            name = jobs[0].task if len({job.task for job in jobs}) == 1 else "many"
            span = current.start_child(op="queue.publish", name=name, origin=_ORIGIN)
            span.set_data("messaging.destination.name", jobs[0].queue)
            span.set_data("messaging.message.body.size", sum(len(job.args) for job in jobs))
        trace = sentry_sdk.get_traceparent() if span is None else span.to_traceparent()
        headers = {_TRACE_KEY: trace, _BAGGAGE_KEY: sentry_sdk.get_baggage()}
        carried = {name: text for name, text in headers.items() if text}
        changed = [_with_headers(job, carried) for job in jobs]
        if span is not None:
            self._publishing[str(trace)] = span
            if all(decode_meta(job.meta_json).get(_TRACE_KEY) != trace for job in changed):
                self._publishing.pop(str(trace)).finish()  # no room, or all have one already
        return changed

    def enqueued(self, jobs: list[NewJob], handles: Sequence[JobHandle]) -> None:
        span = self._published(jobs)
        if span is not None:
            if len(handles) == 1:
                span.set_data("messaging.message.id", str(handles[0].id))
            span.finish()

    def enqueue_failed(self, jobs: list[NewJob], error: BaseException) -> None:
        span = self._published(jobs)
        if span is not None:
            span.set_status("internal_error")
            span.finish()

    def _published(self, jobs: list[NewJob]) -> Any:
        for job in jobs:
            trace = decode_meta(job.meta_json).get(_TRACE_KEY)
            if trace in self._publishing:
                return self._publishing.pop(str(trace))
        return None

    # -- attempts ----------------------------------------------------------------------------

    @contextmanager
    def attempt(self, ctx: Context) -> Iterator[None]:
        job = ctx.job
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            scope.set_tags(_tags(job))
            scope.set_transaction_name(job.task, source="task")
            if job.number == 1:
                self._check_in(job, "in_progress")
            with sentry_sdk.start_transaction(_transaction(job)) as span:
                try:
                    yield
                except _NO_FAILURE:
                    raise
                except BaseException as error:
                    span.set_status("internal_error")
                    if not isinstance(ctx._store, NoStore):  # the end of a child's attempt is seen
                        self._keep(job, error, scope, span)  # by its parent only
                    raise
                else:
                    span.set_status("ok")

    def _keep(self, job: Attempt, error: BaseException, scope: Any, span: Any) -> None:
        if job.policy.secret_args or not isinstance(error, Exception):
            return  # the frames contain the arguments; a stop is described by the outcome
        client = sentry_sdk.get_client()
        mechanism = {"type": "freehold", "handled": False}
        event, hint = event_from_exception(error, client.options, mechanism)
        event["contexts"] = {"trace": span.get_trace_context()}
        self._failures[job.job_id, job.token] = _Failure(event, hint, scope)
        while len(self._failures) > _KEPT_LIMIT:
            self._failures.popitem(last=False)

    # -- ends --------------------------------------------------------------------------------

    def ended(self, attempt: EndedAttempt) -> None:
        job = attempt.job
        failure = self._failures.pop((job.job_id, job.token), None)
        if attempt.state is State.SUCCEEDED:
            self._check_in(job, "ok", attempt.outcome.ran_seconds)
        elif attempt.state is State.FAILED:
            self._check_in(job, "error", attempt.outcome.ran_seconds)
        if attempt.state is not State.FAILED and attempt.outcome.kind is not OutcomeKind.LOST_LEASE:
            return
        if failure is None:
            with sentry_sdk.isolation_scope() as scope:
                scope.set_tags(_tags(job))
                sentry_sdk.capture_event(_event_of(attempt))
        else:
            with use_isolation_scope(failure.scope):
                sentry_sdk.capture_event(failure.event, failure.hint)

    def _check_in(self, job: Attempt, status: str, seconds: float | None = None) -> None:
        if not self._monitor_schedules or tick_of(job.policy_json) is None:
            return
        schedule = self._schedule_of(job)
        if schedule is not None:
            own = f"{self._app._store_identity} {job.job_id}"
            capture_checkin(
                monitor_slug=_slug(schedule.name),
                check_in_id=hashlib.sha256(own.encode()).hexdigest()[:32],
                status=status,
                duration=seconds,
                monitor_config=_monitor_config(schedule),
            )

    def _schedule_of(self, job: Attempt) -> ScheduleDefinition | None:
        """The declared schedule that makes such jobs. A job does not name its schedule."""
        for each in self._app._declarations.of(self._app._tenant_name):
            if each.job.task == job.task and each.job.args == job.args.encode():
                return each
        return None


def _tags(job: Attempt) -> dict[str, Any]:
    return {
        "freehold.job": str(job.job_id),
        "freehold.task": job.task,
        "freehold.queue": job.queue,
        "freehold.attempt": str(job.number),
    }


def _transaction(job: Attempt) -> Any:
    """The first attempt continues the trace of the enqueue; retries have traces of their own."""
    headers = {name: text for name, text in job.meta.items() if isinstance(text, str)}
    transaction = sentry_sdk.continue_trace(
        headers if job.number == 1 else {},
        op="queue.process",
        name=job.task,
        source="task",
        origin=_ORIGIN,
    )
    transaction.set_data("messaging.message.id", str(job.job_id))
    transaction.set_data("messaging.destination.name", job.queue)
    transaction.set_data("messaging.message.retry.count", job.number - 1)
    transaction.set_data("messaging.message.body.size", len(job.args))
    return transaction


def _event_of(attempt: EndedAttempt) -> Any:
    """From what is stored, where no exception was raised in this process."""
    job, outcome = attempt.job, attempt.outcome
    error, reason = outcome.error, attempt.reason or outcome.reason or str(outcome.kind)
    kind = str(outcome.kind) if error is None else error.type
    event: dict[str, Any] = {
        "level": "error",
        "transaction": job.task,
        "exception": {
            "values": [
                {
                    "type": kind,
                    "value": reason if error is None else error.message,
                    "mechanism": {"type": "freehold", "handled": False},
                }
            ]
        },
        "fingerprint": ["freehold", job.task, kind],
    }
    if error is not None and error.trace is not None:
        event["extra"] = {"trace": error.trace}
    return event


def _monitor_config(schedule: ScheduleDefinition) -> Any:
    """None for an interval that Sentry does not know: its monitor is then set up there."""
    timing = schedule.timing
    if isinstance(timing, Cron):
        if len(timing.expression.split()) == 6:  # with seconds
            return None
        crontab = {"type": "crontab", "value": timing.expression}
        return {"schedule": crontab, "timezone": timing.zone}
    minutes, rest = divmod(timing.seconds, 60)
    if rest or not minutes:
        return None
    return {"schedule": {"type": "interval", "value": int(minutes), "unit": "minute"}}


def _slug(name: str) -> str:
    """Letters, digits, - and _, at most 50, as Sentry has them."""
    return "".join(each if each.isalnum() or each in "-_" else "-" for each in name).lower()[-50:]


def _with_headers(job: NewJob, headers: dict[str, str]) -> NewJob:
    """Without what does not fit: a trace must not be the reason why a job is refused."""
    own = decode_meta(job.meta_json)
    try:
        return msgspec.structs.replace(job, meta_json=encode_meta({**headers, **own}))
    except BadInput:
        return job
