"""I2, I4, S3.5: every start has a lease and a cause, and every ending comes from the owner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from freehold.lab.checker.faults import LATE_MICROS
from freehold.lab.checker.indexed_history import AttemptRun, IndexedHistory
from freehold.lab.checker.job_intervals import LeaseInterval
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.state import State

_MICROS = 1_000_000
_K = EventKind
#: Events that only the end of a handler can cause.
_HANDLER_EVENTS = frozenset({_K.SUCCEEDED, _K.RETRIED, _K.SNOOZED, _K.SUSPENDED})
_STOP_EVENTS = frozenset({_K.PAUSED, _K.CANCELED, _K.DRAINED})
#: The events that each end of a handler may cause while its lease holds, stop requests included.
_EVENTS_AFTER = {
    "returned": frozenset({_K.SUCCEEDED}),
    "error": frozenset({_K.RETRIED, _K.FAILED}) | _STOP_EVENTS,
    "retrylater": frozenset({_K.RETRIED, _K.FAILED, _K.PAUSED, _K.CANCELED}),
    "hopeless": frozenset({_K.FAILED, _K.PAUSED, _K.CANCELED, _K.DRAINED}),
    "fail": frozenset({_K.FAILED}),
    "suspended": frozenset({_K.SUSPENDED, _K.PAUSED, _K.CANCELED}),
    "snooze": frozenset({_K.SNOOZED, _K.PAUSED, _K.CANCELED}),
    "pause": frozenset({_K.PAUSED, _K.CANCELED}),
    "cancel": frozenset({_K.CANCELED, _K.PAUSED}),
    # Recovery ends the lease, and obeys a stop request.
    "unknown": frozenset({_K.PAUSED, _K.CANCELED}),
    "stopped": frozenset({_K.RETRIED, _K.FAILED}) | _STOP_EVENTS,
}
#: A handler ends within this time after a stop.
STOP_MICROS = _MICROS


def causes(history: IndexedHistory) -> Iterator[Violation]:
    """I4: every start belongs to a stored lease, and every second start has a cause."""
    for duplicate in history.duplicate_starts:
        yield Violation(
            "I4", duplicate.job, f"was started twice for token {duplicate.token}", duplicate.at
        )
    for (job_id, token), run in history.runs.items():
        intervals = history.jobs.get(job_id)
        if intervals is None:
            yield Violation("I1", job_id, "ran but is not in the store", run.started.at)
        elif token not in intervals.by_token:
            yield Violation(
                "I4", job_id, f"ran with token {token}, for which no end is stored", run.started.at
            )
    for intervals in history.jobs.values():
        for before, after in pairwise(intervals.leases):
            if before.end > after.start:
                yield Violation(
                    "I2",
                    intervals.job.id,
                    f"token {after.token} began before token {before.token} ended",
                )
            elif after.token <= before.token:
                yield Violation(
                    "S3.4", intervals.job.id, f"token {after.token} came after {before.token}"
                )
            elif before.state is not State.QUEUED and not intervals.operator_acted_between(
                before.end, after.start
            ):
                yield Violation("I4", intervals.job.id, f"ran again after it was {before.state}")


def owners(history: IndexedHistory) -> Iterator[Violation]:
    """I2: an ending that the store accepted is the ending of the owner's handler."""
    for (job_id, token), run in history.runs.items():
        lease = history.jobs[job_id].by_token.get(token) if job_id in history.jobs else None
        if lease is None or lease.kind is None:
            continue
        at = run.started.info
        if lease.owner is not None and lease.owner != at["owner"] and not lease.was_lost:
            yield Violation(
                "I2", job_id, f"{lease.owner} ended the attempt of {at['owner']}", lease.end
            )
        if lease.attempt != run.started.attempt:
            yield Violation(
                "I5", job_id, f"attempt {run.started.attempt} is stored as attempt {lease.attempt}"
            )
        yield from _check_end(history, run, lease)


def _check_end(
    history: IndexedHistory, run: AttemptRun, lease: LeaseInterval
) -> Iterator[Violation]:
    kind, how = lease.kind, run.how
    if kind is _K.GIVEN_BACK:
        yield Violation(
            "I5", lease.job, "was returned to the queue as never started, but ran", lease.end
        )
    elif kind in _HANDLER_EVENTS and _was_running(run, lease.end):
        yield Violation(
            "I2", lease.job, f"was stored as {kind} while its handler was still running", lease.end
        )
    if how is None or kind is None or lease.was_lost:
        return
    allowed = _EVENTS_AFTER[how]
    if how in ("stopped", "unknown") and run.started.info.get("fenced"):
        allowed = allowed | {_K.SUCCEEDED}  # the stop came during the commit, or it was executed
    if _exceeded_timeout(run):
        allowed = allowed | {_K.RETRIED, _K.FAILED}
    is_unrecorded = not history.evidence.records_recoveries
    if is_unrecorded and history.faults.grave(lease.owner, lease.start, lease.end):
        allowed = allowed | {_K.PAUSED, _K.CANCELED, _K.FAILED}  # recovered with a stop request
    if kind not in allowed:
        yield Violation(
            "I2", lease.job, f"its handler ended with {how}, but {kind} is stored", lease.end
        )


def _was_running(run: AttemptRun, at: int) -> bool:
    """A fenced transaction ends the job before its handler ends."""
    return not run.started.info.get("fenced") and (run.ended is None or run.ended.at > at)


def _exceeded_timeout(run: AttemptRun) -> bool:
    timeout = run.started.info.get("timeout")
    if timeout is None or run.ended is None:
        return False
    return bool(run.ended.at - run.started.at >= timeout * _MICROS * 0.95)


def results(history: IndexedHistory) -> Iterator[Violation]:
    """I2: the stored result comes from the attempt with the stored token."""
    for intervals in history.jobs.values():
        report = intervals.job.report
        if report is None or report.state is not State.SUCCEEDED or report.token is None:
            continue
        run = history.runs.get((intervals.job.id, report.token))
        if run is None:
            yield Violation(
                "I2", intervals.job.id, f"succeeded with token {report.token}, which never ran"
            )
        elif isinstance(report.result, dict) and report.result.get("token") != report.token:
            wrong = report.result.get("token")
            yield Violation(
                "I2", intervals.job.id, f"has the result of token {wrong}, not {report.token}"
            )


def lost_leases(history: IndexedHistory) -> Iterator[Violation]:
    """I4: no lease is lost without a fault, and a handler stops after its lease is lost."""
    for intervals in history.jobs.values():
        for lease in intervals.leases:
            run = history.run_of(lease)
            if lease.was_lost and not _is_explained(history, run, lease):
                yield Violation(
                    "I4",
                    intervals.job.id,
                    f"lost the lease of {lease.owner}, which had no fault",
                    lease.end,
                )
            if run is not None:
                yield from _check_stop(run, lease)


def _is_explained(history: IndexedHistory, run: AttemptRun | None, lease: LeaseInterval) -> bool:
    start = lease.start - LATE_MICROS
    # An attempt leaves its lease to recovery if a fault has hidden the outcome of its commit.
    is_unknown = run is not None and run.how == "unknown"
    if is_unknown and history.faults.may_hide_a_commit(lease.owner, lease.start, lease.end):
        return True
    # The result of its claim was lost, or that of its fenced transaction while it was stopped.
    may_be_unrecorded = run is None or run.started.info.get("fenced")
    if may_be_unrecorded and history.faults.count(lease.owner, start, lease.end):
        return True
    if history.faults.was_hit_often(lease.owner, lease.start, lease.end):
        return True
    return history.faults.grave(lease.owner, start, lease.end)


def _check_stop(run: AttemptRun, lease: LeaseInterval) -> Iterator[Violation]:
    after = [step.at for step in run.steps if step.at > lease.end]
    if after and after[-1] - after[0] > STOP_MICROS:
        seconds = (after[-1] - lease.end) / _MICROS
        yield Violation(
            "S0.6", lease.job, f"its handler ran for {seconds:.1f} s after the end of its lease"
        )


def timeouts(history: IndexedHistory) -> Iterator[Violation]:
    """S3.5: a handler is stopped at its timeout."""
    for (job_id, _token), run in history.runs.items():
        limit = run.started.info.get("timeout")
        if limit is None or not run.steps:
            continue
        last = run.steps[-1].at
        late = last - run.started.at - limit * _MICROS
        if late > STOP_MICROS and not history.faults.grave(run.started.actor, run.started.at, last):
            yield Violation("S3.5", job_id, f"ran {late / _MICROS:.1f} s beyond its timeout")
