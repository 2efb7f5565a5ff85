"""Bulk operations: one verb on all jobs of a filter, and what it leads to for each of them.

Pure, like `operator_actions`, of which it uses the rules: what refuses one job by hand refuses it
here, and is counted by its cause.

    running -> stopped | done
    stopped -> running
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from freehold.errors import BadInput, IllegalTransition
from freehold.model.history import EventKind
from freehold.model.job import PRIORITY_LIMIT, Job
from freehold.model.names import check_name
from freehold.model.operator_actions import (
    NoChange,
    OperatorVerb,
    RequestStop,
    Transition,
    plan,
)
from freehold.model.retry import MAX_ATTEMPTS_LIMIT
from freehold.model.state import FINAL, LEASED, Stage, State
from freehold.model.timestamps import check_timestamp

#: Up to so many jobs are changed at once, by the caller itself.
AT_ONCE = 100
#: The most jobs of one operation.
JOBS_LIMIT = 1_000_000
KEY_TAKEN = "its unique key is held by another job"
NO_JOB = "there is no such job"


class BulkVerb(StrEnum):
    """What can be done with all jobs of a filter."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    DELETE = "delete"
    AMEND = "amend"


class BulkState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"


class Amendment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `amend` changes of a waiting job; None leaves it as it is."""

    priority: int | None = None
    queue: str | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None


class Amend(msgspec.Struct, frozen=True):
    """The job gets other values; ``stages`` is (if due, if due later)."""

    stages: tuple[Stage, Stage]


class Delete(msgspec.Struct, frozen=True):
    """The job is removed."""


BulkStep: TypeAlias = Transition | RequestStop | NoChange | Amend | Delete


class BulkPreview(msgspec.Struct, frozen=True):
    """What an operation would do, counted exactly: how many jobs match, how many of them would be
    changed (by their present state), of how many the worker would be asked, how many are so
    already, and how many are refused, by cause."""

    jobs: int
    done: dict[str, int]
    requested: int
    already: int
    refused: dict[str, int]


class PreviewStatus(StrEnum):
    """What a verb would lead to for one job."""

    DONE = "done"
    REQUESTED = "requested"
    ALREADY = "already"
    REFUSED = "refused"


class JobPreview(msgspec.Struct, frozen=True):
    """What a verb would lead to for one job; ``cause``: why it is refused. ``state`` is its present
    one, None if there is no such job."""

    id: int
    status: PreviewStatus
    state: State | None
    cause: str | None = None


class BulkOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A stored operation and its progress. ``changed``: jobs that were not touched because they
    changed after it was asked, and match its states no more. ``left``: jobs not yet reached."""

    id: int
    asked_at: datetime
    ended_at: datetime | None
    by: str
    via: str
    reason: str | None
    verb: BulkVerb
    changes: Amendment | None
    filter: dict[str, Any]
    state: BulkState
    jobs: int
    preview: BulkPreview
    done: int
    requested: int
    already: int
    changed: int
    refused: dict[str, int]
    left: int


#: The events of a change, and of a request to a worker, by which changes are counted.
EVENTS: dict[BulkVerb, tuple[str, str]] = {
    BulkVerb.CANCEL: (EventKind.CANCELED, EventKind.CANCEL_REQUESTED),
    BulkVerb.PAUSE: (EventKind.PAUSED, EventKind.PAUSE_REQUESTED),
    BulkVerb.RESUME: (EventKind.RESUMED, ""),
    BulkVerb.RETRY: (EventKind.RETRIED_BY_HAND, ""),
    BulkVerb.AMEND: (EventKind.AMENDED, ""),
    BulkVerb.DELETE: ("deleted", ""),
}


def plan_bulk(
    verb: BulkVerb | OperatorVerb, job: Job, amendment: Amendment | None = None
) -> BulkStep:
    """The effect of the verb on a job in this state. Raises IllegalTransition."""
    if verb is BulkVerb.DELETE:
        return plan_delete(job)
    if verb is BulkVerb.AMEND:
        return plan_amend(job, amendment)
    step = plan(OperatorVerb(verb.value), job)
    if isinstance(step, RequestStop) and job.stop_request in (step.request, "cancel"):
        return NoChange(job.state)  # its worker has been asked before
    return step


def plan_delete(job: Job) -> Delete:
    if job.state in LEASED:
        raise IllegalTransition(
            f"job {job.id} is {job.state}: a worker holds it; cancel it, and delete it when it "
            "has ended"
        )
    return Delete()


def plan_amend(job: Job, amendment: Amendment | None = None) -> Amend:
    if job.state in LEASED or job.state in FINAL or job.stage is None:
        raise IllegalTransition(f"job {job.id} is {job.state}: only a waiting job can be amended")
    run_at = None if amendment is None else amendment.run_at
    if run_at is not None and job.start_by is not None and run_at >= job.start_by:
        raise IllegalTransition(
            f"job {job.id} is {job.state}, and would be canceled before it may start: give a "
            "run_at before its start_by"
        )
    attempts = None if amendment is None else amendment.max_attempts
    if attempts is not None and attempts <= job.attempt:
        raise IllegalTransition(
            f"job {job.id} is {job.state} after {job.attempt} attempts: with "
            f"max_attempts={attempts} none would be left; give more, or cancel it"
        )
    return Amend(_stages_at(job.stage, has_lane=job.target is not None))


def _stages_at(stage: Stage, *, has_lane: bool) -> tuple[Stage, Stage]:
    """The stages of a job that gets another time. A holder keeps its lane."""
    match stage:
        case Stage.PENDING | Stage.PAUSED | Stage.PAUSED_FOLLOWER:
            return (stage, stage)
        case Stage.READY | Stage.SCHEDULED:
            return (Stage.READY, Stage.SCHEDULED)
        case Stage.FOLLOWER:
            return (Stage.FOLLOWER, Stage.SCHEDULED)
        case Stage.LANE_HEAD | Stage.BACKOFF:
            return (Stage.LANE_HEAD, Stage.BACKOFF)
        case _:  # parked, or held back by a limit or the pause of its lane
            return (stage, Stage.BACKOFF if has_lane else Stage.SCHEDULED)


def cause_of(job: Job, refused: IllegalTransition) -> str:
    """Why a job is refused, without its id, so that equal causes are counted together."""
    return str(refused).removeprefix(f"job {job.id} is ")


def check_bulk(
    verb: BulkVerb, states: frozenset[State] | None, amendment: Amendment | None
) -> None:
    """Raises BadInput for a verb without what it needs. ``states``: of its filter, if
    it has one."""
    if verb is BulkVerb.RETRY and states is not None and not states:
        raise BadInput("retry: name the states, such as failed, or succeeded jobs would run again")
    if (verb is BulkVerb.AMEND) != (amendment is not None and amendment != Amendment()):
        raise BadInput(
            "amend needs a priority, queue, time or max_attempts, and no other verb takes one"
        )
    if amendment is None:
        return
    if amendment.priority is not None and not -PRIORITY_LIMIT <= amendment.priority <= (
        PRIORITY_LIMIT
    ):
        raise BadInput(f"priority={amendment.priority}: give -{PRIORITY_LIMIT} to {PRIORITY_LIMIT}")
    if amendment.queue is not None:
        check_name("queue", amendment.queue)
    if amendment.run_at is not None:
        check_timestamp("run_at", amendment.run_at)
    attempts = amendment.max_attempts
    if attempts is not None and not 1 <= attempts <= MAX_ATTEMPTS_LIMIT:
        raise BadInput(f"max_attempts={attempts}: give 1 to {MAX_ATTEMPTS_LIMIT}")
