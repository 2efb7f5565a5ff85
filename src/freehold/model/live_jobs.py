"""Live jobs by stage, queue and lane, each counted up to a bound."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.model.explain import PauseInfo
from freehold.model.limit import NO_LIMIT, Limit
from freehold.model.state import State

#: A count of jobs ends at a bound, so that its cost does not grow with the store.
DEPTH_BOUND = 10_000
#: In a list of all queues, or of many lanes, where each of them is counted.
QUEUE_LIST_BOUND = 1_000
LANE_LIST_BOUND = 100
#: In a list of all queues that is read again and again: of many queues each is counted up to this.
MANY_QUEUES_BOUND = 100
#: So many queues are counted further, up to QUEUE_LIST_BOUND.
FEW_QUEUES = 20


class JobCounts(msgspec.Struct, frozen=True):
    """Live jobs by stage, each counted up to a bound (``DEPTH_BOUND``). Every stage is in exactly
    one of the counts."""

    ready: int
    waiting: int
    following: int
    leased: int
    paused: int
    failed: int
    pending: int
    parked: int
    limited: int
    lane_paused: int


class QueueInfo(msgspec.Struct, frozen=True):
    """A queue: its live jobs, its pause, weight and limit.

    Every live job is in one of the three counts, each of which ends at ``bound``. ``not_ready``: it
    is delayed, backing off, behind others of its lane, limited, parked, paused, failed or pending.
    """

    name: str
    ready: int
    leased: int
    not_ready: int
    oldest_ready_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    paused_until: datetime | None
    weight: float = 1.0
    limit: Limit = NO_LIMIT
    bound: int = DEPTH_BOUND

    @property
    def paused(self) -> bool:
        return self.paused_at is not None

    @property
    def claimable(self) -> int:
        """Ready jobs, as far as the limit of the queue allows them to run."""
        limit = self.limit.max_leases
        return self.ready if limit is None else min(self.ready, max(0, limit - self.leased))


class LaneInfo(msgspec.Struct, frozen=True):
    """A lane: how many jobs it has, its head, and its pause."""

    target: str
    #: Counted up to ``bound``.
    depth: int
    #: The job that holds the lane, or its first job.
    head: int | None
    head_state: State | None
    head_reason: str | None
    head_since: datetime | None
    #: The head waits for a person: paused, failed, or parked.
    blocked: bool
    #: The pause of the lane itself.
    pause: PauseInfo | None
    bound: int = DEPTH_BOUND


class BlockedLane(msgspec.Struct, frozen=True):
    """A lane whose holder waits for a person, and the job that holds it."""

    target: str
    job_id: int
    state: State
    reason: str | None
