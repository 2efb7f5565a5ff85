"""decide(): what the outcome of an attempt leads to.

Retries, stop requests, lanes, drains and lost leases meet only here. decide() is pure: the random
number for the jitter is an argument, and time occurs only as a delay.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from freehold.model.history import EventKind
from freehold.model.job import Attempt, ErrorInfo, StopRequest
from freehold.model.policy import Policy
from freehold.model.state import Stage, State


class OutcomeKind(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    LOST_LEASE = "lost_lease"
    RETRY_LATER = "retry_later"  # requested by the handler: a failed attempt
    SNOOZE = "snooze"  # requested by the handler: not a failed attempt
    PAUSE = "pause"
    CANCEL = "cancel"
    FAIL = "fail"  # raised by the handler: no retry
    DRAIN = "drain"  # the worker ended before the handler
    GIVE_BACK = "give_back"  # assigned, but never started
    SUSPEND = "suspend"  # by the handler's context: it waits, and goes on in another attempt
    MISFIT = "misfit"  # never started: its arguments do not fit the worker's code


NEVER_STARTED = frozenset({OutcomeKind.GIVE_BACK, OutcomeKind.MISFIT})


class Outcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How one attempt ended."""

    kind: OutcomeKind
    result: bytes | None = None
    error: ErrorInfo | None = None
    reason: str | None = None
    delay_seconds: float | None = None
    retryable: bool = True
    ran_seconds: float | None = None
    #: Of a suspended attempt.
    waits_for: str | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of the job. A store writes it only where the lease still holds."""

    state: State
    event: EventKind
    reason: str | None = None
    error: ErrorInfo | None = None
    delay_seconds: float | None = None
    refund: bool = False
    lost: bool = False
    #: True if the job waits for another worker, for at most delay_seconds.
    parks: bool = False
    #: True if the job stops because of a stop request; its stored reason is then the request's.
    obeys: bool = False
    #: The author of the stop request, once the decision is written.
    requested_by: str | None = None
    ran_seconds: float | None = None
    waits_for: str | None = None


#: What every success leads to, whatever the policy and the requests. Its result is in the outcome.
SUCCEEDED = Decision(state=State.SUCCEEDED, event=EventKind.SUCCEEDED)
#: A job that is paused without a request for a pause begins its reason with it.
INTERRUPTED = "Job was interrupted by user"
#: The reason of an attempt whose lease has expired begins with it.
WORKER_LOST = "its worker was lost"
#: The reason of a job that is parked because of its arguments begins with it.
WAITS_FOR_CODE = "waits for a worker whose code fits"
_CHARGED = frozenset(
    {OutcomeKind.ERROR, OutcomeKind.TIMEOUT, OutcomeKind.LOST_LEASE, OutcomeKind.RETRY_LATER}
)
#: Outcomes that leave the job unfinished obey a stop request that came meanwhile.
_OBEDIENT = _CHARGED | {
    OutcomeKind.SNOOZE,
    OutcomeKind.SUSPEND,
    OutcomeKind.PAUSE,
    OutcomeKind.DRAIN,
    OutcomeKind.GIVE_BACK,
    OutcomeKind.MISFIT,
}


def decide(
    attempt: Attempt, outcome: Outcome, request: StopRequest | None, chance: float
) -> Decision:
    """What the outcome leads to under the job's policy and a stop request."""
    if outcome.kind is OutcomeKind.SUCCESS:
        return SUCCEEDED
    policy = attempt.policy
    if request is not None and outcome.kind in _OBEDIENT:
        return _obey(attempt, outcome, request, policy)
    match outcome.kind:
        case OutcomeKind.FAIL:
            return _ended(outcome, State.FAILED, EventKind.FAILED)
        case OutcomeKind.CANCEL:
            return _canceled(attempt, outcome, request, policy)
        case OutcomeKind.PAUSE:
            return _ended(outcome, State.PAUSED, EventKind.PAUSED, refund=True)
        case OutcomeKind.SNOOZE | OutcomeKind.SUSPEND:
            return _later(outcome)
        case OutcomeKind.GIVE_BACK:
            return _queued(outcome, EventKind.GIVEN_BACK, 0.0, refund=True)
        case OutcomeKind.MISFIT:
            return _misfit(attempt, outcome)
        case OutcomeKind.DRAIN:
            return _drained(attempt, outcome, policy)
    return _failed_attempt(attempt, outcome, policy, chance)


def _later(outcome: Outcome) -> Decision:
    event = EventKind.SUSPENDED if outcome.kind is OutcomeKind.SUSPEND else EventKind.SNOOZED
    waits = _queued(outcome, event, outcome.delay_seconds or 0.0, refund=True)
    return msgspec.structs.replace(waits, waits_for=outcome.waits_for)


def _drained(attempt: Attempt, outcome: Outcome, policy: Policy) -> Decision:
    if policy.pauses_on_drain(attempt.target is not None):
        reason = f"{INTERRUPTED}: worker {attempt.owner} was shut down before the job ended"
        return _ended(outcome, State.PAUSED, EventKind.DRAINED, reason=reason, refund=True)
    return _queued(outcome, EventKind.DRAINED, 0.0, refund=True)


def _misfit(attempt: Attempt, outcome: Outcome) -> Decision:
    """In a rolling deploy another worker may have code that fits. The store keeps the first time
    until which the job waits; afterwards it has failed for good."""
    seconds = outcome.delay_seconds or 0.0
    if attempt.misfit_time_is_over or not seconds:
        return _ended(outcome, State.FAILED, EventKind.FAILED)
    reason = f"{WAITS_FOR_CODE} (at most {seconds:g} s): {outcome.reason}"
    parked = _queued(outcome, EventKind.PARKED, seconds, reason=reason, refund=True)
    return msgspec.structs.replace(parked, parks=True)


def _failed_attempt(attempt: Attempt, outcome: Outcome, policy: Policy, chance: float) -> Decision:
    """Errors, timeouts and lost leases follow one rule."""
    lost = outcome.kind is OutcomeKind.LOST_LEASE
    if lost and policy.on_lease_expired == "fail":
        reason = _lost_reason(attempt.lost_attempts + 1)
        return _ended(outcome, State.FAILED, EventKind.FAILED, reason=reason, lost=True)
    if not outcome.retryable:
        return _ended(outcome, State.FAILED, EventKind.FAILED, lost=lost)
    if attempt.number >= attempt.max_attempts:
        reason = (
            _lost_reason(attempt.lost_attempts + 1) if lost else _spent_reason(attempt, outcome)
        )
        return _ended(outcome, State.FAILED, EventKind.FAILED, reason=reason, lost=lost)
    delay = outcome.delay_seconds
    if delay is None:
        delay = policy.retry.delay_seconds(attempt.number, chance)
    event = EventKind.LEASE_LOST if lost else EventKind.RETRIED
    why = WORKER_LOST if lost else outcome.reason
    return _queued(outcome, event, delay, reason=why, lost=lost)


def _lost_reason(times: int) -> str:
    return f"{WORKER_LOST} {times} time{'s' if times != 1 else ''}"


def _spent_reason(attempt: Attempt, outcome: Outcome) -> str:
    spent = f"attempt {attempt.number} of {attempt.max_attempts} failed"
    return f"{spent}: {outcome.reason}" if outcome.reason else spent


def _obey(attempt: Attempt, outcome: Outcome, request: StopRequest, policy: Policy) -> Decision:
    """The job stops as requested. If it may run again, its attempt counts only if it had failed by
    itself; a canceled job shows every attempt that ran."""
    pauses = request is StopRequest.PAUSE or policy.pauses_on_cancel(attempt.target is not None)
    ended = _ended(
        outcome,
        State.PAUSED if pauses else State.CANCELED,
        EventKind.PAUSED if pauses else EventKind.CANCELED,
        # The store adds the author and the reason of the request.
        reason=f"{INTERRUPTED}: canceled" if pauses and request is StopRequest.CANCEL else None,
        refund=outcome.kind not in _CHARGED and (pauses or not outcome.ran_seconds),
        lost=outcome.kind is OutcomeKind.LOST_LEASE,
    )
    return msgspec.structs.replace(ended, obeys=True)


def _canceled(
    attempt: Attempt, outcome: Outcome, request: StopRequest | None, policy: Policy
) -> Decision:
    """A Cancel by the handler ends the job; a cancel by request follows the policy."""
    if request is StopRequest.CANCEL:
        return _obey(attempt, outcome, request, policy)
    return _ended(outcome, State.CANCELED, EventKind.CANCELED)


def _ended(
    outcome: Outcome,
    state: State,
    event: EventKind,
    *,
    reason: str | None = None,
    refund: bool = False,
    lost: bool = False,
) -> Decision:
    return Decision(
        state=state,
        event=event,
        reason=reason or outcome.reason,
        error=outcome.error,
        refund=refund,
        lost=lost,
        ran_seconds=outcome.ran_seconds,
    )


def _queued(
    outcome: Outcome,
    event: EventKind,
    delay_seconds: float,
    *,
    reason: str | None = None,
    refund: bool = False,
    lost: bool = False,
) -> Decision:
    return Decision(
        state=State.QUEUED,
        event=event,
        reason=reason or outcome.reason,
        error=outcome.error,
        delay_seconds=delay_seconds,
        refund=refund,
        lost=lost,
        ran_seconds=outcome.ran_seconds,
    )


def stage_after(decision: Decision, attempt: Attempt) -> tuple[Stage, Stage] | None:
    """The next stage of a leased row: (if due, if due later), or None: into history.

    A job that holds its lane keeps it until its row leaves the live table.
    """
    lane = attempt.target is not None
    if decision.parks:
        return (Stage.PARKED, Stage.PARKED)
    match decision.state:
        case State.QUEUED:
            return (Stage.LANE_HEAD, Stage.BACKOFF) if lane else (Stage.READY, Stage.SCHEDULED)
        case State.PAUSED:
            return (Stage.PAUSED, Stage.PAUSED)
        case State.FAILED if attempt.policy.blocks_lane(lane):
            return (Stage.FAILED, Stage.FAILED)
    return None
