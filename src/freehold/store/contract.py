"""What a store promises, in the order of a job's life.

Both stores pass one suite. Every verb works on sets. Every write of an owner is fenced by id,
owner, token, stage and the database's clock, and returns what it did not hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from freehold.model.explain import LimitUse, QueueRules
from freehold.model.history import Event
from freehold.model.job import Attempt, Enqueued, Job, NewJob, StopRequest
from freehold.model.job_log import LogLine
from freehold.model.limit import Limit
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.tenant import Tenant, TenantState
from freehold.model.worker_info import Heartbeat, LiveWorker
from freehold.store.notify_limiter import NotifyLimiter
from freehold.store.types import (
    DEPTH_BOUND,
    AttemptEnd,
    ClaimRequest,
    Finished,
    JobCounts,
    JobFilter,
    JobPage,
    LaneInfo,
    LaneScan,
    LeaseKey,
    LogChunk,
    NamedLimit,
    QueueInfo,
    Recovered,
    Renewed,
    SweepCheck,
)


class StoreContract(Protocol):
    """The verbs of an asyncio store. `Store` has the same verbs for blocking callers."""

    async def enqueue(
        self, jobs: Sequence[NewJob], limiter: NotifyLimiter | None = None
    ) -> list[Enqueued]:
        """Store jobs; returns one result each, in order. Of several live jobs with one unique key
        only one exists; a remembered idempotency key returns the job it made. Workers are
        notified, by the limiter if there is one."""
        ...

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        """Lease ready jobs: highest priority first, then oldest. Counts an attempt, never returns a
        job twice for a token. On PostgreSQL it never waits for another claimer; on SQLite writers
        take turns. A ready job has no stop request: `transition` has cleared it. Jobs of tasks that
        the claimer does not know are parked. Never leaves more live leases than a limit allows. A
        job that is limited, or lost its worker before, is not prefetched."""
        ...

    async def mark_running(
        self, owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float] | None = None
    ) -> tuple[int, ...]:
        """Show leased jobs as running, for as long as each has run by now. Returns the jobs whose
        lease was lost."""
        ...

    async def renew(
        self,
        owner: str,
        leases: Sequence[LeaseKey],
        lease_seconds: float,
        heartbeat: Heartbeat | None = None,
        heartbeat_seconds: float = 0.0,
    ) -> Renewed:
        """Extend leases that still hold. An expired lease is no lease, even if its job was not
        recovered yet. A heartbeat that is due as well shares the round trip."""
        ...

    async def append_log(self, owner: str, chunks: Sequence[LogChunk]) -> tuple[int, ...]:
        """Store progress and log lines. Returns the jobs whose lease was lost: nothing of them was
        stored."""
        ...

    async def stop_requests(self, owner: str) -> dict[LeaseKey, StopRequest]:
        """The stop requests for this owner's jobs. Reads only."""
        ...

    async def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        """Write the ends of attempts, where the lease still holds. A stop request that came after
        the worker's last read is obeyed as decide() says. One end of a job in a call."""
        ...

    async def release(self, owner: str, attempts: Sequence[Attempt]) -> Finished:
        """Return jobs that never started to the queue; no attempt is counted."""
        ...

    async def recover(self, limit: int, chance: float) -> list[Recovered]:
        """Recover jobs whose lease has expired, through the same policy as failures."""
        ...

    async def make_ready(self, limit: int) -> int:
        """Put due jobs into the ready set. Returns how many."""
        ...

    async def sweep_check(self, tasks: Sequence[str]) -> SweepCheck:
        """What there is to sweep, in one read."""
        ...

    async def unpark(self, tasks: Sequence[str], limit: int) -> int:
        """Make parked jobs of these tasks ready again. Returns how many."""
        ...

    async def admit_limited(self, limit: int) -> int:
        """Make jobs ready that waited for a limit_key which has room now. Returns how many. A
        safety net: every verb that frees room does the same."""
        ...

    async def wake_lanes(self, limit: int) -> int:
        """Resume lanes whose pause has ended. Returns how many."""
        ...

    async def promote_stalled_lanes(self, after: str, limit: int) -> LaneScan:
        """Scan this many lanes after ``after``, and promote the next job of those without a holder.
        A safety net: every verb that removes a job does the same."""
        ...

    async def operate(
        self, verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None
    ) -> list[ActionResult]:
        """Cancel, pause, resume, retry or submit jobs. All are checked before any is written."""
        ...

    async def delete(self, ids: Sequence[int]) -> list[int]:
        """Remove jobs that are not leased, with their events. Returns which."""
        ...

    async def read(self, ids: Sequence[int]) -> dict[int, Job]:
        """Jobs by id, live or finished."""
        ...

    async def events(self, job_id: int) -> list[Event]:
        """The stored events of a job, oldest first."""
        ...

    async def events_after(self, event_id: int, limit: int) -> list[Event]:
        """Events of all jobs with larger ids, in order. A reader that continues from its last event
        gets each one, also one whose transaction commits after later ones."""
        ...

    async def newest_event(self) -> int:
        """The largest id of an event, 0 if there is none: where a reader starts to follow."""
        ...

    async def read_log(self, job_id: int) -> list[LogLine]:
        """The stored log lines of a job, oldest first."""
        ...

    async def page(self, filter: JobFilter) -> JobPage:
        """Jobs, newest first."""
        ...

    async def depth(self, queues: Sequence[str], bound: int = DEPTH_BOUND) -> int:
        """How many jobs can be claimed right now, counted up to a bound."""
        ...

    async def counts(self) -> JobCounts:
        """Live jobs by stage."""
        ...

    async def has_live_jobs(self) -> bool:
        """Whether there is any live job, in whatever stage."""
        ...

    async def queues(self) -> list[QueueInfo]:
        """Queues that have jobs or settings."""
        ...

    async def queue_rules(self, queue: str) -> list[QueueRules]:
        """Pause and limits of a queue, and of all queues together."""
        ...

    async def pause_queue(
        self, name: str, by: str, reason: str | None, until: datetime | None
    ) -> None:
        """Nothing of the queue is claimed until it is resumed, or until a time."""
        ...

    async def resume_queue(self, name: str) -> bool:
        """Returns whether it was paused."""
        ...

    async def set_queue_limit(self, name: str, limit: Limit) -> None:
        """Of a queue, or of all together (``*``). Live leases stay."""
        ...

    async def set_weight(self, name: str, weight: float) -> None:
        """The queue's share of the workers beside others."""
        ...

    async def set_key_limit(self, key: str, limit: Limit) -> None:
        """Of a limit_key, or of a class of them (``github:*``); NO_LIMIT removes the rule."""
        ...

    async def queue_limits(self) -> list[NamedLimit]:
        """Every limit of queues, that of all together among them."""
        ...

    async def shared_use(self) -> LimitUse | None:
        """The limit over all tenants of this database, and its use by each."""
        ...

    async def key_limits(self) -> list[NamedLimit]:
        """Every rule for limit_keys."""
        ...

    async def key_use(self, key: str) -> LimitUse:
        """A limit_key: its limit, and how much of it is used."""
        ...

    async def pause_lane(
        self, target: str, by: str, reason: str | None, until: datetime | None
    ) -> None:
        """Nothing of the lane is started until it is resumed, or until a time."""
        ...

    async def resume_lane(self, target: str) -> bool:
        """Returns whether it was paused."""
        ...

    async def lanes(self, after: str, limit: int) -> list[LaneInfo]:
        """Lanes that have jobs or a pause, by target."""
        ...

    async def apply_retention(self, history_days: float, limit: int) -> int:
        """Delete finished jobs, events and keys older than this; prepares new partitions. Returns
        how many partitions (PostgreSQL) or rows (SQLite) went. Repeat while it is > 0."""
        ...

    async def heartbeat(self, heartbeat: Heartbeat, heartbeat_seconds: float) -> None:
        """Record that a worker is alive, for this long. It decides nothing."""
        ...

    async def remove_worker(self, owner: str) -> None:
        """Remove a worker that has ended from the list."""
        ...

    async def workers(self) -> list[LiveWorker]:
        """Workers with a recent heartbeat, in the order in which they started."""
        ...

    async def remove_silent_workers(self, silent_seconds: float) -> int:
        """Remove workers whose heartbeat expired this long ago. Returns how many."""
        ...

    async def tenants(self) -> list[Tenant]:
        """The directory of tenants, by name. Only the control store has one."""
        ...

    async def tenant(self, name: str) -> Tenant | None:
        """One tenant of the directory."""
        ...

    async def add_tenant(
        self, name: str, place: str, weight: float = 1.0, max_slots: int | None = None
    ) -> Tenant | None:
        """None: a tenant of this name exists already."""
        ...

    async def remove_tenant(self, name: str) -> bool:
        """Returns whether it existed."""
        ...

    async def set_tenant_state(
        self, name: str, state: TenantState, note: str | None = None
    ) -> bool:
        """``note``: by whom, and why. False: there is no such tenant, or it is moving."""
        ...

    async def set_tenant_share(self, name: str, weight: float, max_slots: int | None) -> bool:
        """Its share of the workers, and the maximum of slots in one process."""
        ...

    async def begin_move(self, name: str, place: str, note: str | None = None) -> bool:
        """Mark it as moving. False: it is moving elsewhere, or its last move is not cleaned up."""
        ...

    async def cancel_move(self, name: str, shard: str, note: str | None = None) -> bool:
        """It moves back to its shard. False: it is elsewhere, or was not moving away."""
        ...

    async def switch_move(self, name: str, shard: str) -> bool:
        """It is on the new shard, still moving. False: it was not moving there any more."""
        ...

    async def end_move(
        self, name: str, shard: str, state: TenantState, note: str | None = None
    ) -> bool:
        """It is usable on its shard. False: it was not arriving there any more."""
        ...

    async def clear_move(self, name: str) -> None:
        """Its old shard has nothing of it any more."""
        ...

    async def now(self) -> datetime:
        """The store's clock, which decides."""
        ...
