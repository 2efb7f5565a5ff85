"""I2, I4, S3.5: every start has its lease and its cause, every end is its owner's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from freehold.lab.checker.faults import LATE_MICROS
from freehold.lab.checker.indexed_history import AttemptRun, IndexedHistory
from freehold.lab.checker.job_intervals import Interval
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.state import State

_MICROS = 1_000_000
_K = EventKind
#: Ends that only a handler's own end can have led to.
_OF_HANDLERS = frozenset({_K.SUCCEEDED, _K.RETRIED, _K.SNOOZED})
_STOPPED = frozenset({_K.PAUSED, _K.CANCELED, _K.DRAINED})
#: What a handler's end leads to where its lease held, besides what it was asked meanwhile.
_LEADS_TO = {
    "returned": frozenset({_K.SUCCEEDED}),
    "error": frozenset({_K.RETRIED, _K.FAILED}) | _STOPPED,
    "retrylater": frozenset({_K.RETRIED, _K.FAILED, _K.PAUSED, _K.CANCELED}),
    "hopeless": frozenset({_K.FAILED, _K.PAUSED, _K.CANCELED, _K.DRAINED}),
    "fail": frozenset({_K.FAILED}),
    "snooze": frozenset({_K.SNOOZED, _K.PAUSED, _K.CANCELED}),
    "pause": frozenset({_K.PAUSED, _K.CANCELED}),
    "cancel": frozenset({_K.CANCELED, _K.PAUSED}),
    "unknown": frozenset({_K.SUCCEEDED}),
    "stopped": frozenset({_K.RETRIED, _K.FAILED}) | _STOPPED,
}
#: A handler that was told to stop has ended within this time.
STOP_MICROS = _MICROS


def causes(case: IndexedHistory) -> Iterator[Violation]:
    """I4: a start belongs to a lease that the store tells of; a second one has its cause."""
    for double in case.doubles:
        yield Violation("I4", double.job, f"was started twice for token {double.token}", double.at)
    for (job_id, token), run in case.runs.items():
        life = case.lives.get(job_id)
        if life is None:
            yield Violation("I1", job_id, "ran, and is gone", run.started.at)
        elif token not in life.by_token:
            yield Violation(
                "I4", job_id, f"ran by token {token}, of whose end nothing is told", run.started.at
            )
    for life in case.lives.values():
        for before, after in pairwise(life.spans):
            if before.end > after.start:
                yield Violation(
                    "I2", life.job.id, f"token {after.token} began before the one before ended"
                )
            elif after.token <= before.token:
                yield Violation(
                    "S3.4", life.job.id, f"token {after.token} came after {before.token}"
                )
            elif before.state is not State.QUEUED and not life.hand_between(
                before.end, after.start
            ):
                yield Violation("I4", life.job.id, f"ran again after it was {before.state}")


def owners(case: IndexedHistory) -> Iterator[Violation]:
    """I2: an end that the store accepted is the end that its owner's handler had."""
    for (job_id, token), run in case.runs.items():
        span = case.lives[job_id].by_token.get(token) if job_id in case.lives else None
        if span is None or span.kind is None:
            continue
        at = run.started.info
        if span.owner is not None and span.owner != at["owner"] and not span.was_lost:
            yield Violation(
                "I2", job_id, f"{span.owner} ended the attempt of {at['owner']}", span.end
            )
        if span.attempt != run.started.attempt:
            yield Violation(
                "I5", job_id, f"attempt {run.started.attempt} is told as {span.attempt}"
            )
        yield from _end_fits(case, run, span)


def _end_fits(case: IndexedHistory, run: AttemptRun, span: Interval) -> Iterator[Violation]:
    kind, how = span.kind, run.how
    if kind is _K.GIVEN_BACK:
        yield Violation("I5", span.job, "was given back as never started, but ran", span.end)
    elif kind in _OF_HANDLERS and _was_running(run, span.end):
        yield Violation("I2", span.job, f"is {kind} while its handler was still running", span.end)
    if how is None or kind is None or span.was_lost:
        return
    allowed = _LEADS_TO[how]
    if how == "stopped" and run.started.info.get("fenced"):
        allowed = allowed | {_K.SUCCEEDED}  # the stop came while its transaction was committed
    if _ran_too_long(run):
        allowed = allowed | {_K.RETRIED, _K.FAILED}
    if case.troubles.grave(span.owner, span.start, span.end):
        allowed = allowed | {_K.PAUSED, _K.CANCELED, _K.FAILED}  # recovered, and obeyed a request
    if kind not in allowed:
        yield Violation(
            "I2", span.job, f"its handler ended by {how}, the store says {kind}", span.end
        )


def _was_running(run: AttemptRun, at: int) -> bool:
    """A fenced transaction ends its job before its handler has ended."""
    return not run.started.info.get("fenced") and (run.ended is None or run.ended.at > at)


def _ran_too_long(run: AttemptRun) -> bool:
    timeout = run.started.info.get("timeout")
    if timeout is None or run.ended is None:
        return False
    return bool(run.ended.at - run.started.at >= timeout * _MICROS * 0.95)


def results(case: IndexedHistory) -> Iterator[Violation]:
    """I2: the stored result is that of the attempt whose token is stored with it."""
    for life in case.lives.values():
        report = life.job.report
        if report is None or report.state is not State.SUCCEEDED or report.token is None:
            continue
        run = case.runs.get((life.job.id, report.token))
        if run is None:
            yield Violation(
                "I2", life.job.id, f"succeeded by token {report.token}, which never ran"
            )
        elif isinstance(report.result, dict) and report.result.get("token") != report.token:
            wrong = report.result.get("token")
            yield Violation(
                "I2", life.job.id, f"has the result of token {wrong}, not {report.token}"
            )


def lost_leases(case: IndexedHistory) -> Iterator[Violation]:
    """I4: no lease is lost without a fault; a handler whose lease is gone stops."""
    for life in case.lives.values():
        for span in life.spans:
            run = case.runs.get((life.job.id, span.token))
            if span.was_lost and not _is_explained(case, run, span):
                yield Violation(
                    "I4", life.job.id, f"lost the lease of {span.owner}, who was well", span.end
                )
            if run is not None:
                yield from _stops(run, span)


def _is_explained(case: IndexedHistory, run: AttemptRun | None, span: Interval) -> bool:
    start = span.start - LATE_MICROS
    # Its claim's answer was lost; or nobody knows whether its transaction was committed.
    is_frail = run is None or run.started.info.get("fenced")
    if is_frail and case.troubles.count(span.owner, start, span.end):
        return True
    if case.troubles.was_hit_often(span.owner, span.start, span.end):
        return True
    return case.troubles.grave(span.owner, start, span.end)


def _stops(run: AttemptRun, span: Interval) -> Iterator[Violation]:
    after = [step.at for step in run.steps if step.at > span.end]
    if after and after[-1] - after[0] > STOP_MICROS:
        seconds = (after[-1] - span.end) / _MICROS
        yield Violation("S0.6", span.job, f"its handler ran on for {seconds:.1f} s after its lease")


def timeouts(case: IndexedHistory) -> Iterator[Violation]:
    """S3.5: a handler is stopped at its timeout."""
    for (job_id, _token), run in case.runs.items():
        limit = run.started.info.get("timeout")
        if limit is None or not run.steps:
            continue
        last = run.steps[-1].at
        late = last - run.started.at - limit * _MICROS
        if late > STOP_MICROS and not case.troubles.grave(run.started.who, run.started.at, last):
            yield Violation("S3.5", job_id, f"ran {late / _MICROS:.1f} s beyond its timeout")
