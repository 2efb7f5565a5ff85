"""What an operator's verb leads to: cancel, pause, resume, retry, submit.

Pure, like decide(). Given the job as it was read, plan() returns a Transition (written only if the
job is still as it was read), a RequestStop for the worker that holds its lease, or NoChange. A verb
that the state does not allow raises IllegalTransition.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from freehold.errors import IllegalTransition
from freehold.model import suspension
from freehold.model.history import EventKind
from freehold.model.job import Job, StopRequest
from freehold.model.state import FINAL, IN_LANE, LEASED, Stage, State, check_transition


class OperatorVerb(StrEnum):
    """What an operator can do with a job."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    SUBMIT = "submit"


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """The stage and state that the row changes to.

    ``stages`` is (if due, if due later), or None: into history as ``state``.
    ``keep_run_at``: the job still waits for a ``run_at`` in the future.
    """

    state: State
    event: EventKind
    stages: tuple[Stage, Stage] | None
    fresh_attempts: bool = False
    keep_run_at: bool = False


class RequestStop(msgspec.Struct, frozen=True):
    """The job is leased: leave a request for its worker."""

    request: StopRequest
    event: EventKind


class NoChange(msgspec.Struct, frozen=True):
    """Nothing to do: the job is in that state already."""

    state: State


class ActionStatus(StrEnum):
    """The effect of an operator's verb on one job."""

    DONE = "done"
    #: The job is leased: its worker reads the request and stops it.
    REQUESTED = "requested"
    #: Nothing to do: the job was in that state before.
    ALREADY = "already"


class ActionResult(msgspec.Struct, frozen=True):
    """What became of one job, and its state now."""

    id: int
    status: ActionStatus
    state: State


def plan(verb: OperatorVerb, job: Job) -> Transition | RequestStop | NoChange:
    """The effect of the verb on a job in this state."""
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
        return RequestStop(StopRequest.CANCEL, EventKind.CANCEL_REQUESTED)
    if job.state in (State.SUCCEEDED, State.CANCELED):
        return NoChange(job.state)
    return Transition(state=State.CANCELED, event=EventKind.CANCELED, stages=None)


def _pause(job: Job) -> Transition | RequestStop | NoChange:
    if job.state in LEASED:
        return RequestStop(StopRequest.PAUSE, EventKind.PAUSE_REQUESTED)
    if job.state is State.PAUSED:
        return NoChange(job.state)
    check_transition(job.id, job.state, State.PAUSED)
    assert job.stage is not None
    stage = paused_stage(job.stage, has_lane=job.target is not None)
    return Transition(
        state=State.PAUSED, event=EventKind.PAUSED, stages=(stage, stage), keep_run_at=True
    )


def paused_stage(stage: Stage, *, has_lane: bool) -> Stage:
    """A parked, backing-off or head job holds its lane, also while it is paused."""
    follows = has_lane and stage in IN_LANE | {Stage.SCHEDULED}
    return Stage.PAUSED_FOLLOWER if follows else Stage.PAUSED


def _resume(job: Job) -> Transition | NoChange:
    if job.state in LEASED or job.state is State.QUEUED:
        return NoChange(job.state)
    if job.state not in (State.PAUSED, State.FAILED):
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a paused or failed job can be resumed"
            + (f"; `retry` runs a {job.state} job again" if job.state in FINAL else "")
            + ("; `submit` puts a pending job into the queue" if job.state is State.PENDING else "")
        )
    return Transition(
        state=State.QUEUED,
        event=EventKind.RESUMED,
        stages=_back(job),
        fresh_attempts=job.attempt >= job.max_attempts,
        # What a suspended job waits for may have come meanwhile: its handler finds out.
        keep_run_at=job.state is State.PAUSED and job.attempt == 0 and job.waits_for is None,
    )


def _retry(job: Job) -> Transition:
    if job.state not in FINAL:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a finished job can be retried"
            + ("; `resume` continues a paused job" if job.state is State.PAUSED else "")
        )
    policy = job.policy
    if job.state is State.CANCELED and (policy.node is not None or policy.in_group):
        what = "in a map" if policy.in_group else f"a node of workflow {policy.flow}"
        raise IllegalTransition(
            f"job {job.id} is canceled, and {what}, where it would not wait for its sources: retry "
            "the workflow"
        )
    return plan_retry_with_flow(job)


def plan_retry_with_flow(job: Job) -> Transition:
    """Of a finished member whose flow is retried as a whole."""
    return Transition(
        state=State.QUEUED,
        event=EventKind.RETRIED_BY_HAND,
        stages=_back(job),
        fresh_attempts=True,
    )


def plan_retry_from(job: Job) -> Transition:
    """Of a job that runs again from one of its steps: retried if it is finished, resumed if it is
    paused. It is due at once, because what it waited for was one of its steps."""
    if job.state in FINAL:
        return _retry(job)
    if job.state is not State.PAUSED:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a paused or finished job can run again from a "
            "step; `pause` it first"
        )
    return Transition(
        state=State.QUEUED,
        event=EventKind.RESUMED,
        stages=_back(job),
        fresh_attempts=job.attempt >= job.max_attempts,
    )


def _submit(job: Job) -> Transition | NoChange:
    if job.state is State.QUEUED or job.state in LEASED:
        return NoChange(job.state)
    if job.state is not State.PENDING:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: only a pending job can be put into the queue"
        )
    if job.waits_for is not None:
        raise IllegalTransition(
            f"job {job.id} is pending, and {suspension.sentence(job.waits_for)}: retry a source "
            "that has failed, or cancel the job"
        )
    return Transition(
        state=State.QUEUED, event=EventKind.ENQUEUED, stages=_back(job), keep_run_at=True
    )


def _back(job: Job) -> tuple[Stage, Stage]:
    """Stages of a job back in the queue: a holder keeps its lane, a follower stays behind it."""
    if job.target is None or job.stage in (None, Stage.PENDING):
        return (Stage.READY, Stage.SCHEDULED)
    if job.stage is Stage.PAUSED_FOLLOWER:
        return (Stage.FOLLOWER, Stage.SCHEDULED)
    return (Stage.LANE_HEAD, Stage.BACKOFF)
