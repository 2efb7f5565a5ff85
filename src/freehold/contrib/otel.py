"""OpenTelemetry: spans and metrics of enqueues and attempts, by the conventions for messaging.

    from freehold.contrib.otel import instrument

    instrument(app)

An enqueue is a PRODUCER span, whose context goes with the jobs, in their metadata. Each attempt is
a CONSUMER span in the process that runs the handler, with a link to the enqueue. A worker that is
killed exports nothing: the sweeper that recovers the job makes the span of that attempt.

`opentelemetry-instrument freehold worker ...` does the same without code. Only the API is
imported here; without an SDK nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.clock import monotonic
from freehold.contrib.missing_package import missing
from freehold.errors import BadInput, BadSettings
from freehold.extensions import EndedAttempt, Extension, child_preparations, default_extensions
from freehold.model.handler_exceptions import (
    AttemptEnded,
    Cancel,
    Fail,
    HandlerException,
    Pause,
    Snooze,
)
from freehold.model.job import Attempt, NewJob
from freehold.model.meta import decode_meta, encode_meta
from freehold.model.outcome import OutcomeKind
from freehold.version import VERSION
from freehold.worker.execution.context import Context

try:
    from opentelemetry import metrics, propagate, trace
    from opentelemetry.context import Context as TraceContext
    from opentelemetry.context import attach, detach
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider
except ImportError as error:
    raise missing(error, "opentelemetry", "freehold[otel]") from None

Propagation = Literal["link", "parent", "none"]
SYSTEM = "freehold"
_TRACE_KEY = "traceparent"
#: The bounds that the conventions advise for durations of messaging, in seconds.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
#: Exceptions of handlers by which an attempt has not failed.
_NO_FAILURE = (AttemptEnded, Cancel, Pause, Snooze)
#: The type of the error of an attempt whose child process died, and with it its span.
_PROCESS_DIED = "ProcessDied"


def instrument(
    app: Freehold,
    *,
    propagation: Propagation = "link",
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Trace and measure one app. Call it beside the app, so that child processes do it, too.

    ``link``: an attempt begins a trace of its own, with a link to the enqueue; ``parent``: it is a
    child of the enqueue; ``none``: enqueues have no span, and nothing is stored with the jobs.
    The last call counts, also in a program that `opentelemetry-instrument` has started.
    """
    extension = OpenTelemetry(propagation, tracer_provider, meter_provider)
    app.tasks.extensions.replace(extension)


class FreeholdInstrumentor:
    """For `opentelemetry-instrument`, and for programs that instrument all their packages: every
    app that is made afterwards is traced."""

    def instrument(self, *, propagation: Propagation = "link", **_: Any) -> None:
        if not any(isinstance(each, OpenTelemetry) for each in default_extensions):
            default_extensions.append(OpenTelemetry(propagation))
            child_preparations.append(instrument_child)

    def uninstrument(self, **_: Any) -> None:
        default_extensions[:] = [
            each for each in default_extensions if not isinstance(each, OpenTelemetry)
        ]
        child_preparations[:] = [each for each in child_preparations if each != instrument_child]


def instrument_child() -> None:
    """In a child process, which `opentelemetry-instrument` leaves alone."""
    try:
        from opentelemetry.instrumentation.auto_instrumentation import initialize
    except ImportError:  # then the app sets up its provider itself
        FreeholdInstrumentor().instrument()
    else:
        initialize(swallow_exceptions=True)


class _Sending(msgspec.Struct):
    """An enqueue that has begun."""

    span: Span
    began: float
    attributes: dict[str, Any]


class OpenTelemetry(Extension):
    def __init__(
        self,
        propagation: Propagation = "link",
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        if propagation not in ("link", "parent", "none"):
            raise BadSettings(f"propagation={propagation!r}: choose link, parent or none")
        self._propagation = propagation
        self._tracer = trace.get_tracer(SYSTEM, VERSION, tracer_provider)
        meter = metrics.get_meter(SYSTEM, VERSION, meter_provider)
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", "{message}", "Jobs that were enqueued"
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", "{message}", "Attempts that were started"
        )
        self._send_seconds = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of enqueues",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._process_seconds = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of attempts",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        #: By the id of the span, which is in the metadata of its jobs.
        self._sending: dict[str, _Sending] = {}

    # -- enqueues ----------------------------------------------------------------------------

    def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
        """A context that the caller has given is kept; with all of them given there is no span."""
        mine = [_TRACE_KEY not in decode_meta(job.meta_json) for job in jobs]
        if not any(mine) or self._propagation == "none":
            return jobs
        attributes = _sent_attributes(jobs)
        name = "enqueue" if len({job.task for job in jobs}) > 1 else f"enqueue {jobs[0].task}"
        span = self._tracer.start_span(name, kind=SpanKind.PRODUCER, attributes=attributes)
        if len(jobs) > 1:
            span.set_attribute("messaging.batch.message_count", len(jobs))
        else:
            span.set_attribute("freehold.task", jobs[0].task)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        changed = [
            _with_context(job, carrier) if own else job for job, own in zip(jobs, mine, strict=True)
        ]
        if changed == jobs or _TRACE_KEY not in carrier:
            span.end()  # no room for it, no SDK that records, or a format without this key
        else:
            self._sending[carrier[_TRACE_KEY]] = _Sending(span, monotonic(), attributes)
        return changed

    def enqueued(self, jobs: list[NewJob], handles: Sequence[JobHandle]) -> None:
        sending = self._ended_sending(jobs)
        if sending is not None and len(handles) == 1:
            sending.span.set_attribute("messaging.message.id", str(handles[0].id))
        attributes = _sent_attributes(jobs) if sending is None else sending.attributes
        self._sent.add(sum(handle.created for handle in handles), attributes)
        self._end_sending(sending, None)

    def enqueue_failed(self, jobs: list[NewJob], error: BaseException) -> None:
        self._end_sending(self._ended_sending(jobs), error)

    def _ended_sending(self, jobs: list[NewJob]) -> _Sending | None:
        for job in jobs:
            given = decode_meta(job.meta_json).get(_TRACE_KEY)
            if isinstance(given, str) and given in self._sending:
                return self._sending.pop(given)
        return None

    def _end_sending(self, sending: _Sending | None, error: BaseException | None) -> None:
        if sending is None:
            return
        attributes = dict(sending.attributes)
        if error is not None:
            attributes["error.type"] = _type_of(error)
            _set_error(sending.span, _type_of(error), str(error))
        self._send_seconds.record(monotonic() - sending.began, attributes)
        sending.span.end()

    # -- attempts ----------------------------------------------------------------------------

    @contextmanager
    def attempt(self, ctx: Context) -> Iterator[None]:
        attributes = _attributes("process", "process", ctx.job.queue)
        self._consumed.add(1, attributes)
        began = monotonic()
        with self._process_span(ctx.job, ctx.tenant) as span:
            try:
                yield
            except BaseException as error:
                attributes |= _ended_by(span, error, ctx)
                raise
            else:
                span.set_attribute("freehold.outcome", "success")
            finally:
                self._process_seconds.record(monotonic() - began, attributes)

    @contextmanager
    def _process_span(self, job: Attempt, tenant: str | None) -> Iterator[Span]:
        carried = {k: v for k, v in job.meta.items() if isinstance(v, str)}
        context: TraceContext = propagate.extract(carried, TraceContext())
        created_in = trace.get_current_span(context).get_span_context()
        links = [Link(created_in)] if created_in.is_valid else []
        if self._propagation != "parent":
            context = trace.set_span_in_context(trace.INVALID_SPAN, context)
        token = attach(context)  # with its baggage
        try:
            with self._tracer.start_as_current_span(
                f"process {job.task}",
                kind=SpanKind.CONSUMER,
                attributes=_of_attempt(job, tenant),
                links=links if self._propagation == "link" else (),
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                yield span
        finally:
            detach(token)

    def ended(self, attempt: EndedAttempt) -> None:
        """The process of these attempts is gone, and could not end their spans."""
        outcome = attempt.outcome
        is_lost = outcome.kind is OutcomeKind.LOST_LEASE
        if not is_lost and (outcome.error is None or outcome.error.type != _PROCESS_DIED):
            return
        with self._process_span(attempt.job, None) as span:
            span.set_attribute("freehold.outcome", str(outcome.kind))
            kind = str(outcome.kind) if is_lost else _PROCESS_DIED
            _set_error(span, kind, attempt.reason or outcome.reason or kind)


# -- attributes ------------------------------------------------------------------------------


def _attributes(name: str, kind: str, queue: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
    }
    if queue is not None:
        found["messaging.destination.name"] = queue
    return found


def _sent_attributes(jobs: Sequence[NewJob]) -> dict[str, Any]:
    queues = {job.queue for job in jobs}
    return _attributes("enqueue", "send", jobs[0].queue if len(queues) == 1 else None)


def _of_attempt(job: Attempt, tenant: str | None) -> dict[str, Any]:
    found = {
        **_attributes("process", "process", job.queue),
        "messaging.message.id": str(job.job_id),
        "messaging.client.id": job.owner,
        "freehold.task": job.task,
        "freehold.attempt": job.number,
        "freehold.max_attempts": job.max_attempts,
    }
    return found if tenant is None else {**found, "freehold.tenant": tenant}


def _ended_by(span: Span, error: BaseException, ctx: Context) -> dict[str, Any]:
    """Describes the end of an attempt. Returns what its measurement has beside."""
    stop = ctx._held_lease.stop_reason  # ctx.stop_reason would count as seen by the handler
    if isinstance(error, _NO_FAILURE):
        span.set_attribute("freehold.outcome", type(error).__name__.lower())
        return {}
    if stop is not None and not isinstance(error, HandlerException):
        span.set_attribute("freehold.outcome", str(stop))
        if str(stop) not in ("timeout", "lease_lost"):
            return {}
        _set_error(span, str(stop), f"the handler was stopped: {stop}")
        return {"error.type": str(stop)}
    span.set_attribute("freehold.outcome", "fail" if isinstance(error, Fail) else "error")
    is_secret = bool(ctx.job.policy.secret_args)
    if not is_secret:  # a message or a trace could contain the arguments
        span.record_exception(error)
    _set_error(span, _type_of(error), "" if is_secret else str(error))
    return {"error.type": _type_of(error)}


def _set_error(span: Span, kind: str, text: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, text))


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _with_context(job: NewJob, carrier: dict[str, str]) -> NewJob:
    """Without what does not fit: a trace must not be the reason why a job is refused."""
    own = decode_meta(job.meta_json)
    for carried in (carrier, {k: v for k, v in carrier.items() if k == _TRACE_KEY}):
        try:
            return msgspec.structs.replace(job, meta_json=encode_meta({**carried, **own}))
        except BadInput:
            continue
    return job
