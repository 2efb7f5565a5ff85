"""I10, P2, S4.5: the responses to operators are true, and stop requests take effect."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory, Invocation
from freehold.lab.checker.job_intervals import FOREVER, JobIntervals
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind, timeline
from freehold.model.limit import ALL_QUEUES
from freehold.model.state import State
from freehold.model.timestamps import micros_of

_MICROS = 1_000_000
_K = EventKind
_EVENT_OF = {
    "cancel": _K.CANCELED,
    "pause": _K.PAUSED,
    "resume": _K.RESUMED,
    "retry": _K.RETRIED_BY_HAND,
    "submit": _K.ENQUEUED,
}
_REQUESTS = frozenset({_K.CANCEL_REQUESTED, _K.PAUSE_REQUESTED})
#: A healthy worker has stopped a handler this long after the request.
STOP_MICROS = 2 * _MICROS


def operator_responses_are_true(history: IndexedHistory) -> Iterator[Violation]:
    for invocation in history.invocations:
        response = invocation.response
        if response is None or response.job not in history.jobs:
            continue
        intervals = history.jobs[response.job]
        call, job_id, verb = response.call, response.job, response.info["verb"]
        match response.info.get("status"):
            case None if response.info["error"] == "StoreUnavailable":
                if any(event.by == call for event in intervals.events):
                    yield Violation("I10", job_id, f"{call} failed as not written, but took effect")
            case "done" if not _has_event(intervals, _EVENT_OF[verb], call):
                yield Violation("I10", job_id, f"{call} returned: {verb} done; it was not")
            case "requested" if not _has_request(intervals, invocation):
                yield Violation("I10", job_id, f"{call} returned: {verb} requested; it was not")
            case "already":
                state = State(response.info["state"])
                if _comparable(state) not in _states(history, intervals, invocation):
                    yield Violation("I10", job_id, f"{call} returned: already {state}; it was not")


def _has_event(intervals: JobIntervals, kind: EventKind, by: str) -> bool:
    return sum(event.kind is kind and event.by == by for event in intervals.events) == 1


def _has_request(intervals: JobIntervals, invocation: Invocation) -> bool:
    """Whether it stored a request, or left an earlier request in place."""
    assert invocation.response is not None
    return any(
        event.kind in _REQUESTS and micros_of(event.at) <= invocation.response.at
        for event in intervals.events
    )


def _states(history: IndexedHistory, intervals: JobIntervals, invocation: Invocation) -> set[State]:
    """The states of the job between the request and the response."""
    assert invocation.response is not None
    found: set[State] = set()
    current = State.QUEUED
    for entry in timeline(intervals.job, list(intervals.events)):
        at = micros_of(entry.at)
        if at > invocation.response.at:
            break
        if at + history.evidence.commit_lag_micros >= invocation.request.at:
            found.add(current)
        current = _comparable(entry.state)
    return found | {current}


def _comparable(state: State) -> State:
    """The time at which an attempt became running is not in the events."""
    return State.RUNNING if state is State.ASSIGNED else state


def requests(history: IndexedHistory) -> Iterator[Violation]:
    """P2: after a stop request there is no further attempt."""
    for intervals in history.jobs.values():
        for event in intervals.events:
            if event.kind not in _REQUESTS:
                continue
            at = micros_of(event.at)
            lease = next((s for s in intervals.leases if s.start <= at <= s.end), None)
            if lease is None:
                continue
            if lease.state is State.QUEUED and lease.end != FOREVER:
                yield Violation(
                    "P2", intervals.job.id, f"was queued again after {event.kind}", lease.end
                )
            cancels = event.kind is _K.CANCEL_REQUESTED
            has_lane = intervals.job.target is not None
            if (
                cancels
                and lease.kind is _K.PAUSED
                and not intervals.job.policy.pauses_on_cancel(has_lane)
            ):
                yield Violation(
                    "S4.6", intervals.job.id, "was paused after a cancel request", lease.end
                )
            yield from _check_stop(history, intervals, lease.token, at)


def _check_stop(
    history: IndexedHistory, intervals: JobIntervals, token: int, at: int
) -> Iterator[Violation]:
    run = history.runs.get((intervals.job.id, token))
    if run is None or not run.steps:
        return
    last = run.steps[-1].at
    faults = history.faults.count(run.started.actor, run.started.at, last)
    faults += history.faults.grave(run.started.actor, at, last)
    if last > at + STOP_MICROS and not faults:
        seconds = (last - at) / _MICROS
        text = f"ran for {seconds:.1f} s after the stop request"
        yield Violation("S4.5", intervals.job.id, text)


def paused_queues(history: IndexedHistory) -> Iterator[Violation]:
    """No job of a paused queue is claimed."""
    for invocation in history.invocations:
        response = invocation.response
        if (
            invocation.request.info.get("verb") != "pause_queue"
            or response is None
            or "error" in response.info
        ):
            continue
        queue = invocation.request.info["queue"]
        resumed = min(_resumes(history, queue, invocation.request.at), default=FOREVER)
        for intervals in history.jobs.values():
            if queue in (intervals.job.queue, ALL_QUEUES):
                for lease in intervals.leases:
                    if response.at < lease.start < resumed:
                        yield Violation(
                            "pause", intervals.job.id, f"was claimed while {queue} was paused"
                        )


def _resumes(history: IndexedHistory, queue: str, since: int) -> Iterator[int]:
    """From when each resume of a queue may have ended a pause that was requested at ``since``. One
    that was over by then has not, unless it was executed late; a fault records each that was."""
    for invocation in history.invocations:
        request, response = invocation.request, invocation.response
        if request.info.get("verb") != "resume_queue" or request.info["queue"] != queue:
            continue
        if response is None or response.at >= since:
            yield request.at
        elif invocation.is_unknown:
            late = history.faults.arrived_late(request.actor, "resume_queue")
            yield from (at for at in late if at >= since)
