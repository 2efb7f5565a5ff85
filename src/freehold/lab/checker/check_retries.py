"""I5, P7: what is charged is counted, what is not is refunded, and failures follow the policy."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.checker.indexed_history import AttemptRun, IndexedHistory
from freehold.lab.checker.job_intervals import Interval, JobIntervals
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind

_MICROS = 1_000_000
#: Times are rounded to the microsecond on their way.
_ROUNDING = 2
_K = EventKind
_CHARGED = frozenset({_K.RETRIED, _K.LEASE_LOST, _K.FAILED})
_REFUNDED = frozenset({_K.SNOOZED, _K.GIVEN_BACK, _K.DRAINED})


def budgets(case: IndexedHistory) -> Iterator[Violation]:
    """I5, P7: what is charged is counted, what is not is refunded, and nobody tries for ever."""
    for life in case.lives.values():
        yield from _budget(case, life)


def _budget(case: IndexedHistory, life: JobIntervals) -> Iterator[Violation]:
    job = life.job
    counted, charged = {0}, 0
    for step in life.steps():
        if step.kind is _K.RETRIED_BY_HAND or step.kind is _K.RESUMED:
            by_hand = step.kind is _K.RETRIED_BY_HAND
            counted = {0 if by_hand or count >= job.max_attempts else count for count in counted}
            charged = 0
        if step.token is None:
            continue
        number = step.attempt
        if number - 1 not in counted:
            yield Violation(
                "I5", job.id, f"attempt {number} came after {sorted(counted)} were counted"
            )
        charged += step.kind in _CHARGED
        counted = _counted(step.kind, number)
        if charged > job.max_attempts:
            yield Violation(
                "P7", job.id, f"{charged} attempts failed of at most {job.max_attempts}"
            )
    yield from _policy(case, life)


def _counted(kind: EventKind | None, number: int) -> set[int]:
    """What the store can have counted after such an end."""
    if kind in _REFUNDED:
        return {number - 1}
    if kind in (_K.PAUSED, _K.CANCELED):
        return {number - 1, number}  # as it had gone wrong before, or not
    return {number}


def _policy(case: IndexedHistory, life: JobIntervals) -> Iterator[Violation]:
    """S3.3, S4.9: failures follow the policy, backoff included."""
    for index, span in enumerate(life.spans):
        run = case.runs.get((life.job.id, span.token))
        match span.kind:
            case _K.RETRIED | _K.LEASE_LOST:
                yield from _tried_again(life, span, run)
            case _K.FAILED:
                yield from _failed(life, span, run)
            case _K.SNOOZED:
                yield from _snoozed(life, span, run)
        if index + 1 < len(life.spans):
            yield from _not_early(life, span, life.spans[index + 1])


def _tried_again(life: JobIntervals, span: Interval, run: AttemptRun | None) -> Iterator[Violation]:
    job, policy = life.job, life.job.policy
    if span.attempt >= job.max_attempts:
        yield Violation("P7", job.id, f"is tried again after attempt {span.attempt}, its last")
    if span.kind is _K.LEASE_LOST and policy.on_lease_expired == "fail":
        yield Violation("S4.9", job.id, "is tried again after a lost lease: it should fail")
    asked = run is not None and run.how == "retrylater"
    least = 0.0 if asked else policy.retry.delay_seconds(span.attempt, 1.0)
    if (span.due or span.end) - span.end < least * _MICROS - _ROUNDING:
        yield Violation("S2.7", job.id, f"is tried again without waiting {least:.2f} s")


def _failed(life: JobIntervals, span: Interval, run: AttemptRun | None) -> Iterator[Violation]:
    gave_up = run is not None and run.how in ("fail", "hopeless")
    if (
        span.attempt < life.job.max_attempts
        and not gave_up
        and not (span.was_lost and life.job.policy.on_lease_expired == "fail")
    ):
        of = f"{span.attempt} of {life.job.max_attempts}"
        yield Violation("S3.3", life.job.id, f"failed for good at attempt {of}")


def _snoozed(life: JobIntervals, span: Interval, run: AttemptRun | None) -> Iterator[Violation]:
    asked = None if run is None or run.ended is None else run.ended.info.get("delay")
    if asked is not None and (span.due or 0) - span.end < asked * _MICROS - _ROUNDING:
        yield Violation("S4.10", life.job.id, "was snoozed for less than it asked")


def _not_early(life: JobIntervals, span: Interval, after: Interval) -> Iterator[Violation]:
    is_early = span.due is not None and after.start < span.due
    if is_early and not life.hand_between(span.end, after.start):
        yield Violation("S1.1", life.job.id, "was claimed before it was due")
