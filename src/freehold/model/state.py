"""The state machine: the table of transitions, and the stages of a live row.

A *state* is what users see. A *stage* is what a live job waits for, and decides which partial index
its row is in. The tables store a stage as one byte (`store/stage_sql.py`).

    pending  -> queued | canceled
    queued   -> assigned | running | canceled | paused
    assigned -> running | queued | succeeded | failed | canceled | paused
    running  -> succeeded | failed | canceled | paused | queued
    paused   -> queued | canceled
    failed   -> queued | canceled | pending
    canceled -> queued | pending
    succeeded -> queued
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from freehold.errors import IllegalTransition


class State(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    ASSIGNED = "assigned"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


_S = State
TRANSITIONS: MappingProxyType[State, frozenset[State]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.QUEUED, _S.CANCELED}),
        _S.QUEUED: frozenset({_S.ASSIGNED, _S.RUNNING, _S.CANCELED, _S.PAUSED}),
        _S.ASSIGNED: frozenset(
            {_S.RUNNING, _S.QUEUED, _S.SUCCEEDED, _S.FAILED, _S.CANCELED, _S.PAUSED}
        ),
        _S.RUNNING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELED, _S.PAUSED, _S.QUEUED}),
        _S.PAUSED: frozenset({_S.QUEUED, _S.CANCELED}),
        # Pending: a node of a workflow that is retried, and waits for its sources again.
        _S.FAILED: frozenset({_S.QUEUED, _S.CANCELED, _S.PENDING}),
        _S.SUCCEEDED: frozenset({_S.QUEUED}),
        _S.CANCELED: frozenset({_S.QUEUED, _S.PENDING}),
    }
)

LEASED = frozenset({State.ASSIGNED, State.RUNNING})
FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELED})


class Stage(StrEnum):
    """What a live job waits for. Only READY and LANE_HEAD are in the claim index."""

    PENDING = "pending"  # not yet in its queue: not submitted, or its sources have not ended
    SCHEDULED = "scheduled"  # waits for its run_at
    READY = "ready"  # can be claimed; the claim decides whether its lane, if any, is free
    LANE_HEAD = "lane_head"  # can be claimed; holds its lane
    FOLLOWER = "follower"  # waits behind the holder of its lane
    PARKED = "parked"  # the worker that claimed it does not know its task, or has other code
    LEASED = "leased"
    BACKOFF = "backoff"  # waits for its run_at; holds its lane
    PAUSED = "paused"  # paused; holds its lane, if it has one
    PAUSED_FOLLOWER = "paused_follower"  # paused behind the holder of its lane
    FAILED = "failed"  # failed, and blocks its lane
    LIMITED = "limited"  # its limit_key is at its limit; holds its lane, if it has one
    LANE_PAUSED = "lane_paused"  # head of a lane that is paused as a whole; holds it


STATE_OF_STAGE: MappingProxyType[Stage, State] = MappingProxyType(
    {
        Stage.PENDING: State.PENDING,
        Stage.SCHEDULED: State.QUEUED,
        Stage.READY: State.QUEUED,
        Stage.LANE_HEAD: State.QUEUED,
        Stage.FOLLOWER: State.QUEUED,
        Stage.PARKED: State.QUEUED,
        Stage.LEASED: State.ASSIGNED,  # or running, once its start was recorded
        Stage.BACKOFF: State.QUEUED,
        Stage.PAUSED: State.PAUSED,
        Stage.PAUSED_FOLLOWER: State.PAUSED,
        Stage.FAILED: State.FAILED,
        Stage.LIMITED: State.QUEUED,
        Stage.LANE_PAUSED: State.QUEUED,
    }
)

#: A lane has at most one row in these stages; a unique index enforces it.
HOLDS_LANE = frozenset(
    {
        Stage.LANE_HEAD,
        Stage.PARKED,
        Stage.LEASED,
        Stage.BACKOFF,
        Stage.PAUSED,
        Stage.FAILED,
        Stage.LIMITED,
        Stage.LANE_PAUSED,
    }
)

#: Stages of jobs that wait in a lane without holding it, in the order of their ids.
IN_LANE = frozenset({Stage.READY, Stage.FOLLOWER, Stage.PAUSED_FOLLOWER})

#: Stages that only a job with a target can have.
NEEDS_LANE = frozenset(
    {
        Stage.LANE_HEAD,
        Stage.FOLLOWER,
        Stage.BACKOFF,
        Stage.PAUSED_FOLLOWER,
        Stage.FAILED,
        Stage.LANE_PAUSED,
    }
)


def state_of(stage: Stage, started: bool) -> State:
    """The state of a live row."""
    if stage is Stage.LEASED and started:
        return State.RUNNING
    return STATE_OF_STAGE[stage]


def check_transition(job_id: int, source: State, goal: State) -> None:
    """Raise IllegalTransition if the table has no such transition."""
    if goal in TRANSITIONS[source]:
        return
    possible = ", ".join(sorted(TRANSITIONS[source]))
    raise IllegalTransition(
        f"job {job_id} is {source} and cannot become {goal}; from {source} it can become {possible}"
    )
