"""I10, P2, S4.5: what operators were told is so, and what they asked is obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import IndexedHistory, Question
from freehold.lab.checker.job_intervals import FOREVER, JobIntervals
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind, timeline
from freehold.model.limit import ALL_QUEUES
from freehold.model.state import State
from freehold.store.rows import micros_of

_MICROS = 1_000_000
_K = EventKind
_DONE = {
    "cancel": _K.CANCELED,
    "pause": _K.PAUSED,
    "resume": _K.RESUMED,
    "retry": _K.RETRIED_BY_HAND,
    "submit": _K.ENQUEUED,
}
_ASKED = {"cancel": _K.CANCEL_REQUESTED, "pause": _K.PAUSE_REQUESTED}
_REQUESTS = frozenset(_ASKED.values())
#: A healthy worker has stopped a handler this long after it was asked.
OBEY_MICROS = 2 * _MICROS


def honest_operations(case: IndexedHistory) -> Iterator[Violation]:
    for question in case.questions:
        told = question.told
        if told is None or told.job not in case.lives:
            continue
        life, verb = case.lives[told.job], told.info["verb"]
        match told.info.get("what"):
            case None if told.info["error"] == "StoreUnavailable":
                if any(event.by == told.call for event in life.events):
                    yield Violation("I10", told.job, f"{told.call} was told that nothing was done")
            case "done" if not _has_event(life, _DONE[verb], told.call):
                yield Violation("I10", told.job, f"{told.call} was told: {verb} done; it was not")
            case "requested" if not _has_request(life, question):
                yield Violation(
                    "I10", told.job, f"{told.call} was told: {verb} requested; it was not"
                )
            case "already" if _seen(State(told.info["state"])) not in _states(case, life, question):
                state = told.info["state"]
                yield Violation("I10", told.job, f"{told.call} was told: it is {state}; it was not")


def _has_event(life: JobIntervals, kind: EventKind, by: str) -> bool:
    return sum(event.kind is kind and event.by == by for event in life.events) == 1


def _has_request(life: JobIntervals, question: Question) -> bool:
    """Its own event, or that of an earlier one, which it left as it was."""
    assert question.told is not None
    return any(
        event.kind in _REQUESTS and micros_of(event.at) <= question.told.at for event in life.events
    )


def _states(case: IndexedHistory, life: JobIntervals, question: Question) -> set[State]:
    """Those that the job had between question and answer."""
    assert question.told is not None
    found: set[State] = set()
    current = State.QUEUED
    for moment in timeline(life.job, list(life.events)):
        at = micros_of(moment.at)
        if at > question.told.at:
            break
        if at + case.evidence.commit_lag_micros >= question.asked.at:
            found.add(current)
        current = _seen(moment.state)
    return found | {current}


def _seen(state: State) -> State:
    """When an attempt was shown as running, only its row knew."""
    return State.RUNNING if state is State.ASSIGNED else state


def requests(case: IndexedHistory) -> Iterator[Violation]:
    """P2: an attempt that was asked to stop does not lead to another one."""
    for life in case.lives.values():
        for event in life.events:
            if event.kind not in _REQUESTS:
                continue
            at = micros_of(event.at)
            span = next((s for s in life.spans if s.start <= at <= s.end), None)
            if span is None:
                continue
            if span.state is State.QUEUED and span.end != FOREVER:
                yield Violation(
                    "P2", life.job.id, f"is queued again, though {event.kind}", span.end
                )
            cancels = event.kind is _K.CANCEL_REQUESTED
            has_lane = life.job.target is not None
            if (
                cancels
                and span.kind is _K.PAUSED
                and not life.job.policy.pauses_on_cancel(has_lane)
            ):
                yield Violation(
                    "S4.6", life.job.id, "was paused, though a cancel was asked", span.end
                )
            yield from _obeyed(case, life, span.token, at)


def _obeyed(case: IndexedHistory, life: JobIntervals, token: int, at: int) -> Iterator[Violation]:
    run = case.runs.get((life.job.id, token))
    if run is None or not run.steps:
        return
    last = run.steps[-1].at
    excused = case.troubles.count(run.started.who, run.started.at, last)
    excused += case.troubles.grave(run.started.who, at, last)
    if last > at + OBEY_MICROS and not excused:
        seconds = (last - at) / _MICROS
        text = f"ran on for {seconds:.1f} s after it was asked to stop"
        yield Violation("S4.5", life.job.id, text)


def paused_queues(case: IndexedHistory) -> Iterator[Violation]:
    """Nothing of a paused queue is claimed."""
    changes = [
        q for q in case.questions if q.asked.info.get("verb") in ("pause_queue", "resume_queue")
    ]
    for question in changes:
        told = question.told
        if question.asked.info["verb"] != "pause_queue" or told is None or "error" in told.info:
            continue
        queue = question.asked.info["queue"]
        resumed = min(
            (
                each.asked.at
                for each in changes
                if each.asked.info["verb"] == "resume_queue"
                and each.asked.info["queue"] == queue
                and (each.told is None or each.told.at >= question.asked.at)
            ),
            default=FOREVER,
        )
        for life in case.lives.values():
            if queue in (life.job.queue, ALL_QUEUES):
                for span in life.spans:
                    if told.at < span.start < resumed:
                        yield Violation(
                            "pause", life.job.id, f"was claimed while {queue} was paused"
                        )
