"""The state machine: one table, and the stages in which a live row stands.

A *state* is what a person sees. A *stage* is one letter in the live table and says which
partial index a row stands in, which is to say: what the job waits for.

    pending  -> queued | canceled
    queued   -> assigned | running | canceled | paused
    assigned -> running | queued | succeeded | failed | canceled | paused
    running  -> succeeded | failed | canceled | paused | queued
    paused   -> queued | canceled
    failed   -> queued | canceled
    succeeded, canceled -> queued
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
        _S.FAILED: frozenset({_S.QUEUED, _S.CANCELED}),
        _S.SUCCEEDED: frozenset({_S.QUEUED}),
        _S.CANCELED: frozenset({_S.QUEUED}),
    }
)

LEASED = frozenset({State.ASSIGNED, State.RUNNING})
FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELED})


class Stage(StrEnum):
    """Where a live row stands. Only READY and HEAD are in the claim's index."""

    NEW = "n"  # pending: nobody has put it into the queue yet
    WAITING = "w"  # waits for its time
    READY = "r"  # can be claimed; if it has a target, its lane is still to be settled
    HEAD = "R"  # can be claimed, and holds its lane
    FOLLOWER = "f"  # behind the holder of its lane
    PARKED = "u"  # no live worker knows its task
    HELD = "h"  # leased
    BACKOFF = "b"  # waits for its time and holds its lane
    PAUSED = "p"  # paused; holds its lane, if it has one
    FOLLOWER_PAUSED = "q"  # paused behind the holder of its lane
    FAILED = "x"  # failed, and blocks its lane
    LIMITED = "l"  # its limit_key has no room; holds its lane, if it has one
    STOPPED = "t"  # next in a lane that is paused as such; holds it


STATE_OF_STAGE: MappingProxyType[Stage, State] = MappingProxyType(
    {
        Stage.NEW: State.PENDING,
        Stage.WAITING: State.QUEUED,
        Stage.READY: State.QUEUED,
        Stage.HEAD: State.QUEUED,
        Stage.FOLLOWER: State.QUEUED,
        Stage.PARKED: State.QUEUED,
        Stage.HELD: State.ASSIGNED,  # or running, once it was seen to start
        Stage.BACKOFF: State.QUEUED,
        Stage.PAUSED: State.PAUSED,
        Stage.FOLLOWER_PAUSED: State.PAUSED,
        Stage.FAILED: State.FAILED,
        Stage.LIMITED: State.QUEUED,
        Stage.STOPPED: State.QUEUED,
    }
)

#: A lane has at most one row in these stages: a unique index says so.
HOLDS_LANE = frozenset(
    {
        Stage.HEAD,
        Stage.PARKED,
        Stage.HELD,
        Stage.BACKOFF,
        Stage.PAUSED,
        Stage.FAILED,
        Stage.LIMITED,
        Stage.STOPPED,
    }
)

#: Who stands in a lane without holding it, in the order of their ids.
IN_LANE = frozenset({Stage.READY, Stage.FOLLOWER, Stage.FOLLOWER_PAUSED})


def state_of(stage: Stage, started: bool) -> State:
    """What a person sees of a live row."""
    if stage is Stage.HELD and started:
        return State.RUNNING
    return STATE_OF_STAGE[stage]


def check_transition(job_id: int, source: State, goal: State) -> None:
    """Raise IllegalTransition, naming what is possible instead."""
    if goal in TRANSITIONS[source]:
        return
    possible = ", ".join(sorted(TRANSITIONS[source]))
    raise IllegalTransition(
        f"job {job_id} is {source} and cannot become {goal}; from {source} it can become {possible}"
    )
