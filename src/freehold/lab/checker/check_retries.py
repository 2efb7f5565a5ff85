"""I5, P7: attempts are counted or refunded by their events, and failures follow the policy."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import AttemptRun, IndexedHistory
from freehold.lab.checker.job_intervals import JobIntervals, LeaseInterval
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind

_MICROS = 1_000_000
#: Stored times are rounded to the microsecond.
_ROUNDING = 2
_K = EventKind
_CHARGED = frozenset({_K.RETRIED, _K.LEASE_LOST, _K.FAILED})
_REFUNDED = frozenset({_K.SNOOZED, _K.SUSPENDED, _K.GIVEN_BACK, _K.DRAINED, _K.PARKED})


def budgets(history: IndexedHistory) -> Iterator[Violation]:
    """I5, P7: charged attempts are counted, others are refunded, and no job is retried for ever."""
    for intervals in history.jobs.values():
        yield from _check_budget(history, intervals)


def _check_budget(history: IndexedHistory, intervals: JobIntervals) -> Iterator[Violation]:
    job = intervals.job
    counted, charged = {0}, 0
    for step in intervals.steps():
        if step.kind is _K.RETRIED_BY_HAND or step.kind is _K.RESUMED:
            is_retry = step.kind is _K.RETRIED_BY_HAND
            counted = {0 if is_retry or count >= job.max_attempts else count for count in counted}
            charged = 0
        if step.token is None:
            continue
        number = step.attempt
        if number - 1 not in counted:
            either = " or ".join(map(str, sorted(counted)))
            yield Violation("I5", job.id, f"attempt {number} began while the count was {either}")
        charged += step.kind in _CHARGED
        counted = _counted(step.kind, number)
        if charged > job.max_attempts:
            yield Violation(
                "P7", job.id, f"{charged} attempts failed; the maximum is {job.max_attempts}"
            )
    yield from _check_policy(history, intervals)


def _counted(kind: EventKind | None, number: int) -> set[int]:
    """The attempts that the store may have counted after such an event."""
    if kind in _REFUNDED:
        return {number - 1}
    if kind in (_K.PAUSED, _K.CANCELED):
        return {number - 1, number}  # depends on whether the attempt had failed
    return {number}


def _check_policy(history: IndexedHistory, intervals: JobIntervals) -> Iterator[Violation]:
    """S3.3, S4.9: failures follow the policy, backoff included."""
    for index, lease in enumerate(intervals.leases):
        run = history.run_of(lease)
        match lease.kind:
            case _K.RETRIED | _K.LEASE_LOST:
                yield from _check_retry(intervals, lease, run)
            case _K.FAILED:
                yield from _check_failure(history, intervals, lease, run)
            case _K.PARKED if history.misfit_time_is_over(intervals, lease):
                yield Violation("P4", intervals.job.id, "was parked again after its wait was over")
            case _K.SNOOZED:
                yield from _check_snooze(intervals, lease, run)
        if index + 1 < len(intervals.leases):
            yield from _check_due(intervals, lease, run, intervals.leases[index + 1])


def _check_retry(
    intervals: JobIntervals, lease: LeaseInterval, run: AttemptRun | None
) -> Iterator[Violation]:
    job, policy = intervals.job, intervals.job.policy
    if lease.attempt >= job.max_attempts:
        yield Violation("P7", job.id, f"is retried after attempt {lease.attempt}, its last")
    if lease.kind is _K.LEASE_LOST and policy.on_lease_expired == "fail":
        yield Violation("S4.9", job.id, "is retried after a lost lease, but its policy is to fail")
    has_own_delay = run is not None and run.how == "retrylater"
    min_delay = 0.0 if has_own_delay else policy.retry.delay_seconds(lease.attempt, 1.0)
    if (lease.due or lease.end) - lease.end < min_delay * _MICROS - _ROUNDING:
        yield Violation("S2.7", job.id, f"is retried without a delay of {min_delay:.2f} s")


def _check_failure(
    history: IndexedHistory,
    intervals: JobIntervals,
    lease: LeaseInterval,
    run: AttemptRun | None,
) -> Iterator[Violation]:
    if run is None:
        gave_up = history.misfit_time_is_over(intervals, lease)
    else:
        gave_up = run.how in ("fail", "hopeless")
    if (
        lease.attempt < intervals.job.max_attempts
        and not gave_up
        and not (lease.was_lost and intervals.job.policy.on_lease_expired == "fail")
    ):
        attempt = f"{lease.attempt} of {intervals.job.max_attempts}"
        yield Violation("S3.3", intervals.job.id, f"failed at attempt {attempt}")


def _check_snooze(
    intervals: JobIntervals, lease: LeaseInterval, run: AttemptRun | None
) -> Iterator[Violation]:
    delay = None if run is None or run.ended is None else run.ended.info.get("delay")
    if delay is not None and (lease.due or 0) - lease.end < delay * _MICROS - _ROUNDING:
        yield Violation("S4.10", intervals.job.id, "was snoozed for less time than requested")


def _check_due(
    intervals: JobIntervals, lease: LeaseInterval, run: AttemptRun | None, after: LeaseInterval
) -> Iterator[Violation]:
    is_early = lease.due is not None and after.start < lease.due and not _is_woken(lease, run)
    if is_early and not intervals.operator_acted_between(lease.end, after.start):
        yield Violation("S1.1", intervals.job.id, "was claimed before it was due")


def _is_woken(lease: LeaseInterval, run: AttemptRun | None) -> bool:
    """Its signal, or the last of the jobs that it gathers, wakes such a job early."""
    if lease.kind is not _K.SUSPENDED or run is None or run.suspended is None:
        return False
    return run.suspended.info["waits"] in ("signal", "gather")
