"""Everything an operator can read and do, for the command line and the API alike.

Each function checks its input and composes verbs of the store. `Operator` and `AsyncOperator`
offer them as methods.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

import msgspec

from freehold.errors import BadInput, IllegalTransition, JobNotFound
from freehold.model.audit import OPERATOR, PYTHON, AuditFilter, AuditPage, Author
from freehold.model.history import TimelineEntry, timeline
from freehold.model.job import Job
from freehold.model.job_log import LogLine
from freehold.model.lease_history import LeaseRecord, lease_history
from freehold.model.limit import ALL_QUEUES, Limit
from freehold.model.names import check_key, check_name
from freehold.model.operator_actions import ActionResult, ActionStatus, OperatorVerb
from freehold.model.step import Step, check_step_name
from freehold.model.timestamps import check_timestamp
from freehold.operations.bulk import AsyncBulk, Bulk
from freehold.operations.edits import ArgumentCheck, EditActions
from freehold.operations.edits import CloneChanges as CloneChanges
from freehold.operations.explanations import ExplanationActions
from freehold.operations.failures import FailureActions
from freehold.operations.findings import FindingActions
from freehold.operations.flows import FlowActions
from freehold.operations.input_checks import LARGEST_ID, author_of, bound, checked_ids, existing
from freehold.operations.lists import ListActions
from freehold.operations.measured_reads import MeasuredSession, Meter
from freehold.operations.pictures import PictureActions
from freehold.operations.previews import ActionPreview as ActionPreview
from freehold.operations.previews import PreviewActions
from freehold.operations.private_data import PrivateDataActions
from freehold.operations.retention import RetentionActions
from freehold.operations.search import SearchActions
from freehold.operator_schedules import ScheduleActions
from freehold.store.statements import (
    AsyncMethods,
    BlockingMethods,
    Verb,
    method,
    nothing,
)
from freehold.store.verbs import audit as audit_verbs
from freehold.store.verbs import job_log, limits, queries, steps, workers
from freehold.store.verbs import operator as operator_verbs
from freehold.store.verbs import pause as pause_verbs

#: The most entries of a timeline, and lines of a log, that are shown of one job.
SHOWN_LIMIT = 1000
_EVERY_CHANGE = AuditFilter()

P = ParamSpec("P")
T = TypeVar("T")


class JobDetail(msgspec.Struct, frozen=True):
    """A job with its timeline, its log, its steps and its leases. ``complete``: false if it has
    more events or log lines than are shown, which are the newest."""

    job: Job
    timeline: list[TimelineEntry]
    log: list[LogLine]
    steps: list[Step]
    complete: bool = True
    leases: list[LeaseRecord] = []


def show(job_id: int) -> Verb[JobDetail]:
    """A job with its timeline and its log, the newest 1,000 entries of each, and its steps."""
    job = yield from existing(job_id)
    # One more than is shown, to know whether there are more.
    events = yield from queries.events(job_id, SHOWN_LIMIT + 1)
    log = yield from job_log.read_log(job_id, SHOWN_LIMIT + 1)
    stored = yield from steps.read_steps(job_id) if job.policy.has_steps else nothing()
    shown = [step.shown() for step in stored or []]
    entries = timeline(job, events)
    complete = max(len(entries), len(log)) <= SHOWN_LIMIT
    leases = lease_history(job, events[-SHOWN_LIMIT:])
    return JobDetail(job, entries[-SHOWN_LIMIT:], log[-SHOWN_LIMIT:], shown, complete, leases)


def act(
    verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """Apply one verb to jobs: all are checked before any is written."""
    author = author_of(by, via, reason)
    results = yield from operator_verbs.operate(
        verb, checked_ids(ids), author.by, author.reason, author.via
    )
    return results


def cancel(
    *ids: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """End jobs; the worker of a running one is asked to stop it. A failed job is resolved."""
    return act(OperatorVerb.CANCEL, ids, by, reason, via)


def pause(
    *ids: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """Hold jobs back until they are resumed; the worker of a running one is asked to stop it."""
    return act(OperatorVerb.PAUSE, ids, by, reason, via)


def resume(
    *ids: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """Put paused or failed jobs back into the queue."""
    return act(OperatorVerb.RESUME, ids, by, reason, via)


def retry(
    *ids: int,
    by: str,
    reason: str | None = None,
    from_step: str | None = None,
    via: str = PYTHON,
) -> Verb[list[ActionResult]]:
    """Run finished jobs again, with all their attempts. ``from_step``: one job, finished or paused,
    forgets this step and the later ones, and runs again."""
    if from_step is None:
        return act(OperatorVerb.RETRY, ids, by, reason, via)
    return _retry_from(checked_ids(ids), check_step_name(from_step), author_of(by, via, reason))


def _retry_from(ids: Sequence[int], step: str, author: Author) -> Verb[list[ActionResult]]:
    if len(ids) != 1:
        raise BadInput(f"from step {step!r}: give one job, not {len(ids)}; each has its own steps")
    result = yield from operator_verbs.retry_from(ids[0], step, author)
    return [result]


def submit(
    *ids: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """Put pending jobs into the queue."""
    return act(OperatorVerb.SUBMIT, ids, by, reason, via)


def delete(*ids: int, by: str, reason: str | None = None, via: str = PYTHON) -> Verb[None]:
    """Remove waiting and finished jobs with their events and log lines. All are checked before any
    is removed; a job that a worker holds is refused."""
    yield from operator_verbs.delete_all(checked_ids(ids), author_of(by, via, reason))


def resume_in_lane(
    target: str, job_id: int, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[ActionResult]:
    """Resume a paused or failed job, if it belongs to this lane."""
    job = yield from existing(job_id)
    if job.target != target:
        where = f"in lane {job.target}" if job.target else "in no lane"
        raise JobNotFound(f"target {target!r} has no job {job_id}: that job is {where}")
    (result,) = yield from resume(job_id, by=by, reason=reason, via=via)
    if result.status is ActionStatus.ALREADY:
        raise IllegalTransition(
            f"job {job_id} is {result.state}: only a paused or failed job can be resumed"
        )
    return result


def pause_queue(
    name: str,
    by: str,
    reason: str | None = None,
    until: datetime | None = None,
    via: str = PYTHON,
) -> Verb[None]:
    """Pause a queue, or all of them (``*``)."""
    _queue_or_all(name)
    author = author_of(by, via, reason)
    yield from _check_end(until)
    yield from pause_verbs.pause_queue(name, author.by, author.reason, until, author)


def _check_end(until: datetime | None) -> Verb[None]:
    """A pause that has already ended would hold nothing back."""
    if until is None:
        return
    check_timestamp("until", until)
    now = yield from queries.now()
    if until <= now:
        raise BadInput(f"until={until.isoformat()}: give a time after {now.isoformat()}")


def resume_queue(
    name: str, by: str = OPERATOR, reason: str | None = None, via: str = PYTHON
) -> Verb[bool]:
    """Returns whether the queue was paused."""
    author = author_of(by, via, reason)
    was_paused = yield from pause_verbs.resume_queue(_queue_or_all(name), author)
    return was_paused


def set_queue_limit(
    name: str, limit: Limit, by: str = OPERATOR, reason: str | None = None, via: str = PYTHON
) -> Verb[None]:
    """Limit a queue, or all of them together (``*``)."""
    yield from limits.set_queue_limit(_queue_or_all(name), limit, author_of(by, via, reason))


def set_weight(
    name: str, weight: float, by: str = OPERATOR, reason: str | None = None, via: str = PYTHON
) -> Verb[None]:
    """Set a queue's share of the workers; every other queue has 1 unless set."""
    if not 0.001 <= weight <= 1_000_000:
        raise BadInput(f"weight={weight!r}: give a number from 0.001 to 1000000")
    yield from limits.set_weight(check_name("queue", name), weight, author_of(by, via, reason))


def set_key_limit(
    key: str, limit: Limit, by: str = OPERATOR, reason: str | None = None, via: str = PYTHON
) -> Verb[None]:
    """Limit the jobs of a limit key; ``github:*`` limits each key with that prefix."""
    author = author_of(by, via, reason)
    yield from limits.set_key_limit(check_key("limit key", key), limit, author)


def _queue_or_all(name: str) -> str:
    return name if name == ALL_QUEUES else check_name("queue", name)


def pause_lane(
    target: str,
    by: str,
    reason: str | None = None,
    until: datetime | None = None,
    via: str = PYTHON,
) -> Verb[None]:
    """Start no job of the lane until it is resumed, or until a time."""
    check_key("target", target)
    author = author_of(by, via, reason)
    yield from _check_end(until)
    yield from pause_verbs.pause_lane(target, author.by, author.reason, until, author)


def resume_lane(
    target: str, by: str = OPERATOR, reason: str | None = None, via: str = PYTHON
) -> Verb[bool]:
    """Returns whether the lane was paused."""
    author = author_of(by, via, reason)
    was_paused = yield from pause_verbs.resume_lane(check_key("target", target), author)
    return was_paused


def audit(filter: AuditFilter = _EVERY_CHANGE) -> Verb[AuditPage]:
    """A page of operators' changes, newest first."""
    for what in ("by", "verb", "subject"):
        if getattr(filter, what) is not None:
            check_key(what, getattr(filter, what))
    if filter.subject is not None and filter.kind is None:
        raise BadInput("subject: give its kind too, such as job or queue")
    if filter.before is not None and not 0 < filter.before <= LARGEST_ID:
        raise BadInput(f"before={filter.before}: give the `next` of the page before")
    page = yield from audit_verbs.audit(filter)
    return page


class _Actions(
    EditActions,
    ListActions,
    SearchActions,
    ExplanationActions,
    FailureActions,
    FindingActions,
    FlowActions,
    PictureActions,
    PreviewActions,
    PrivateDataActions,
    ScheduleActions,
    RetentionActions,
):
    """What both operators offer."""

    show = method(show)
    cancel = method(cancel)
    pause = method(pause)
    resume = method(resume)
    retry = method(retry)
    submit = method(submit)
    delete = method(delete)
    resume_in_lane = method(resume_in_lane)
    events_after = method(queries.events_after)
    newest_event = method(queries.newest_event)
    pause_of_all = method(queries.pause_of_all)
    now = method(queries.now)
    workers = method(workers.workers)
    pause_queue = method(pause_queue)
    resume_queue = method(resume_queue)
    set_queue_limit = method(set_queue_limit)
    set_weight = method(set_weight)
    set_key_limit = method(set_key_limit)
    queue_limits = method(limits.queue_limits)
    key_limits = method(limits.key_limits)
    shared_use = method(limits.shared_use)
    queue_use = method(limits.queue_use)
    key_use = method(limits.key_use)
    pause_lane = method(pause_lane)
    resume_lane = method(resume_lane)
    audit = method(audit)


class Operator(_Actions, BlockingMethods):
    """`app.operator`, for callers that block. ``via``: the interface that the audit records.
    ``check``: of the arguments of clones, by the signatures of known tasks. ``tenant``: the one of
    the jobs, for commands in remedies."""

    def __init__(
        self,
        store: BlockingMethods,
        via: str = PYTHON,
        check: ArgumentCheck | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(store.session)
        self._via = via
        self._check = check
        self._tenant = tenant

    def through(self, via: str) -> Operator:
        """The same for another interface."""
        return Operator(self, via, self._check, self._tenant)

    @property
    def bulk(self) -> Bulk:
        """One verb on all jobs of a filter."""
        return Bulk(self.session, self._via)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, T]:
        return super()._as_method(
            bound(verb, via=self._via, check=self._check, tenant=self._tenant)
        )


class AsyncOperator(_Actions, AsyncMethods):
    """`app.aoperator`: the methods of `Operator` as coroutines."""

    def __init__(
        self,
        store: AsyncMethods,
        via: str = PYTHON,
        check: ArgumentCheck | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(store.session)
        self._via = via
        self._check = check
        self._tenant = tenant

    def through(self, via: str) -> AsyncOperator:
        return AsyncOperator(self, via, self._check, self._tenant)

    def measured(self, meter: Meter) -> AsyncOperator:
        """The same, whose statements a meter runs."""
        methods = AsyncMethods(MeasuredSession(self.session, meter))
        return AsyncOperator(methods, self._via, self._check, self._tenant)

    @property
    def bulk(self) -> AsyncBulk:
        return AsyncBulk(self.session, self._via)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        return super()._as_method(
            bound(verb, via=self._via, check=self._check, tenant=self._tenant)
        )
