"""What an operator's word leads to: cancel, pause, resume, retry, submit.

Like decide(), pure: given the job as it was read, each function answers with a Move (to be
written only if the job is still as it was read), with a request to its owner, or with what
is already so. Impossible wishes raise IllegalTransition and change nothing.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from freehold.errors import IllegalTransition
from freehold.model.history import EventKind
from freehold.model.job import Job, Request
from freehold.model.state import FINAL, IN_LANE, LEASED, Stage, State, check_transition


class OperatorVerb(StrEnum):
    """The operator's verbs."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    SUBMIT = "submit"


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """From what was seen to where the row goes.

    ``stages`` is (if due, if due later), or None: into history as ``state``.
    ``keep_run_at``: a time that has not come yet is still waited for.
    """

    state: State
    event: EventKind
    stages: tuple[Stage, Stage] | None
    fresh_attempts: bool = False
    keep_run_at: bool = False


class RequestStop(msgspec.Struct, frozen=True):
    """Somebody owns the job: leave a request for the owner."""

    request: Request
    event: EventKind


class NoChange(msgspec.Struct, frozen=True):
    """Nothing to do: the job is already so."""

    state: State


class ActionResult(msgspec.Struct, frozen=True):
    """What an operator is told: ``done``, ``requested`` or ``already``, and the state now."""

    id: int
    what: str
    state: State


def plan(verb: OperatorVerb, job: Job) -> Transition | RequestStop | NoChange:
    """What the verb means for a job in this state."""
    match verb:
        case OperatorVerb.CANCEL:
            return _cancel(job)
        case OperatorVerb.PAUSE:
            return _pause(job)
        case OperatorVerb.RESUME:
            return _resume(job)
        case OperatorVerb.RETRY:
            return _retry(job)
        case OperatorVerb.SUBMIT:
            return _submit(job)


def _cancel(job: Job) -> Transition | RequestStop | NoChange:
    if job.state in LEASED:
        return RequestStop(Request.CANCEL, EventKind.CANCEL_REQUESTED)
    if job.state in (State.SUCCEEDED, State.CANCELED):
        return NoChange(job.state)
    return Transition(state=State.CANCELED, event=EventKind.CANCELED, stages=None)


def _pause(job: Job) -> Transition | RequestStop | NoChange:
    if job.state in LEASED:
        return RequestStop(Request.PAUSE, EventKind.PAUSE_REQUESTED)
    if job.state is State.PAUSED:
        return NoChange(job.state)
    check_transition(job.id, job.state, State.PAUSED)
    follows = job.target is not None and job.stage in IN_LANE | {Stage.WAITING}
    stage = Stage.FOLLOWER_PAUSED if follows else Stage.PAUSED
    # A parked, backing-off or head job holds its lane, and goes on holding it while paused.
    return Transition(
        state=State.PAUSED, event=EventKind.PAUSED, stages=(stage, stage), keep_run_at=True
    )


def _resume(job: Job) -> Transition | NoChange:
    if job.state in LEASED or job.state is State.QUEUED:
        return NoChange(job.state)
    if job.state not in (State.PAUSED, State.FAILED):
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a paused or failed job can be resumed"
            + (f"; `retry` runs a {job.state} job again" if job.state in FINAL else "")
            + ("; enqueue it first" if job.state is State.PENDING else "")
        )
    return Transition(
        state=State.QUEUED,
        event=EventKind.RESUMED,
        stages=_back(job),
        fresh_attempts=job.attempt >= job.max_attempts,
        keep_run_at=job.state is State.PAUSED and job.attempt == 0,
    )


def _retry(job: Job) -> Transition:
    if job.state not in FINAL:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a finished job can be retried"
            + ("; `resume` continues a paused job" if job.state is State.PAUSED else "")
        )
    return Transition(
        state=State.QUEUED,
        event=EventKind.RETRIED_BY_HAND,
        stages=_back(job),
        fresh_attempts=True,
    )


def _submit(job: Job) -> Transition | NoChange:
    if job.state is State.QUEUED or job.state in LEASED:
        return NoChange(job.state)
    if job.state is not State.PENDING:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a pending job can be put into the queue"
        )
    return Transition(
        state=State.QUEUED, event=EventKind.ENQUEUED, stages=_back(job), keep_run_at=True
    )


def _back(job: Job) -> tuple[Stage, Stage]:
    """Into the queue: a holder keeps its lane, a follower its place, others are born ready."""
    if job.target is None or job.stage in (None, Stage.NEW):
        return (Stage.READY, Stage.WAITING)
    if job.stage is Stage.FOLLOWER_PAUSED:
        return (Stage.FOLLOWER, Stage.WAITING)
    return (Stage.HEAD, Stage.BACKOFF)
