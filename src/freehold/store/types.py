"""What a store promises, in the order of a job's way.

Both stores pass one suite. Every verb works on sets. Every write of an owner is fenced by
id, owner, token, stage and the database's clock, and says what it did not hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from freehold.model.explain import LimitUse, PauseInfo, QueueRules
from freehold.model.history import Event
from freehold.model.job import Attempt, Enqueued, Job, NewJob, Request
from freehold.model.job_log import LogLine, Progress
from freehold.model.limit import NO_LIMIT, Limit
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.outcome import Decision, Outcome
from freehold.model.state import State
from freehold.model.tenant import Tenant, TenantState
from freehold.model.worker_info import Heartbeat, LiveWorker
from freehold.store.claim_cursor import ClaimCursors
from freehold.store.notify_limiter import NotifyLimiter
from freehold.store.sweep_check import LaneScan, SweepCheck

PAGE_LIMIT = 1000
DEPTH_BOUND = 10_000


class QueueDemand(msgspec.Struct, frozen=True):
    """How many jobs of which queue; ``ahead`` of them would not start at once."""

    queue: str
    count: int
    ahead: int = 0


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Who claims, for how long, what. ``tasks=None`` means: can run anything.

    ``memory`` belongs to the claimer, which hands in the same one each time."""

    owner: str
    lease_seconds: float
    wants: tuple[QueueDemand, ...]
    tasks: frozenset[str] | None = None
    memory: ClaimCursors | None = None


class LeaseKey(msgspec.Struct, frozen=True):
    """What proves ownership, besides the owner's name."""

    job_id: int
    token: int


class Renewed(msgspec.Struct, frozen=True):
    """Which leases go on, with what was asked of them; and which are lost."""

    held: dict[int, Request | None]
    lost: tuple[int, ...]


class NewLogLine(msgspec.Struct, frozen=True):
    """A line that a handler said: which of its attempt's, and how long ago."""

    number: int
    text: str
    ago_seconds: float


class LogChunk(msgspec.Struct, frozen=True):
    """What an attempt said since it was last asked."""

    lease: LeaseKey
    progress: Progress | None
    lines: tuple[NewLogLine, ...]


class AttemptEnd(msgspec.Struct, frozen=True, gc=False):
    """An attempt and how it ended; ``request`` is what its worker knew to be asked of it."""

    attempt: Attempt
    outcome: Outcome
    request: Request | None = None
    chance: float = 0.5


class Finished(msgspec.Struct, frozen=True):
    """What each accepted ending led to, by job id; and whose lease was lost (nothing written)."""

    decisions: dict[int, Decision]
    lost: tuple[int, ...]


class Recovered(msgspec.Struct, frozen=True):
    """A job taken back from an owner whose lease had run out."""

    attempt: Attempt
    decision: Decision


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list. ``before`` is the cursor of the page before."""

    states: frozenset[State] = frozenset()
    queue: str | None = None
    task: str | None = None
    target: str | None = None
    tag: str | None = None
    before: int | None = None
    limit: int = 50


class JobPage(msgspec.Struct, frozen=True):
    """Newest first. ``next`` is the cursor of the next page, None after the last.

    A page reads a bounded number of rows: with a rare filter it can be short, or even
    empty, and still have a next one.
    """

    jobs: tuple[Job, ...]
    next: int | None


class JobCounts(msgspec.Struct, frozen=True):
    """Live jobs by what they wait for, each counted up to a bound (``DEPTH_BOUND``)."""

    ready: int
    waiting: int
    following: int
    leased: int
    paused: int
    failed: int
    pending: int
    parked: int


class QueueInfo(msgspec.Struct, frozen=True):
    """A queue as it can be read: what can be claimed, what is leased, and its pause."""

    name: str
    ready: int
    leased: int
    oldest_ready_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    paused_until: datetime | None
    weight: float = 1.0
    limit: Limit = NO_LIMIT

    @property
    def paused(self) -> bool:
        return self.paused_at is not None


class NamedLimit(msgspec.Struct, frozen=True):
    """A limit and what it stands on: a queue, all of them, a limit_key, or a class of those."""

    name: str
    limit: Limit


class LaneInfo(msgspec.Struct, frozen=True):
    """A lane: how many jobs it has, who holds it, and whether it is paused as such."""

    target: str
    depth: int
    #: Who holds it, or stands first in it.
    head: int | None
    head_state: State | None
    head_reason: str | None
    head_since: datetime | None
    #: The head waits for a person: paused, failed, or of a task that no worker knows.
    blocked: bool
    #: The lane itself, by a person.
    pause: PauseInfo | None


class StoreContract(Protocol):
    """The verbs of a store, as the parts of a worker see them. `faces` has their blocking twin."""

    async def enqueue(
        self, jobs: Sequence[NewJob], crier: NotifyLimiter | None = None
    ) -> list[Enqueued]:
        """Store jobs, one answer each, in order. Of several live jobs with one unique key only
        one exists; a remembered idempotency key answers with the job it made. Those who wait are
        told, by the crier if there is one."""
        ...

    async def claim(self, ask: ClaimRequest) -> list[Attempt]:
        """Lease ready jobs: highest priority first, then oldest. Counts an attempt, clears
        stale requests, never waits for another claimer, never returns a job twice for a token.
        Jobs of tasks that the claimer does not know are parked. Never leaves more live leases
        than a limit allows; what is limited, or lost its worker before, is not claimed ahead."""
        ...

    async def start(
        self, owner: str, leases: Sequence[LeaseKey], ran_seconds: Sequence[float] | None = None
    ) -> tuple[int, ...]:
        """Show leased jobs as running, for as long as each has run by now. Answers which leases
        were lost."""
        ...

    async def renew(
        self,
        owner: str,
        leases: Sequence[LeaseKey],
        lease_seconds: float,
        beat: Heartbeat | None = None,
        beat_seconds: float = 0.0,
    ) -> Renewed:
        """Extend leases that still hold. An expired lease is no lease, even if nobody took it.
        A beat, where one is due as well, costs no round trip of its own."""
        ...

    async def note(self, owner: str, noted: Sequence[LogChunk]) -> tuple[int, ...]:
        """Keep what handlers said. Answers whose lease was lost: nothing of theirs was kept."""
        ...

    async def requests(self, owner: str) -> dict[LeaseKey, Request]:
        """What was asked of this owner's jobs. Reads only."""
        ...

    async def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        """Persist what outcomes lead to, where the lease still holds. A request that came
        after the worker looked is obeyed as decide() says. One ending of a job in a call."""
        ...

    async def release(self, owner: str, attempts: Sequence[Attempt]) -> Finished:
        """Give back what never started: queued again, no attempt counted."""
        ...

    async def recover(self, limit: int, chance: float) -> list[Recovered]:
        """Take back jobs whose lease has expired, through the same policy as failures."""
        ...

    async def make_ready(self, limit: int) -> int:
        """Put jobs whose time has come into the ready set. Answers how many."""
        ...

    async def chores(self, tasks: Sequence[str]) -> SweepCheck:
        """What there is to sweep, in one look."""
        ...

    async def unpark(self, tasks: Sequence[str], limit: int) -> int:
        """Make parked jobs ready again whose task a worker knows."""
        ...

    async def relieve(self, limit: int) -> int:
        """Make ready what waited for its limit_key and has room now. Answers how many. A net:
        whoever frees room does the same."""
        ...

    async def wake_lanes(self, limit: int) -> int:
        """Resume lanes whose pause has ended. Answers how many."""
        ...

    async def free_lanes(self, after: str, limit: int) -> LaneScan:
        """Look at so many lanes behind ``after``, and give those that nobody holds to their next. A
        net: whoever takes a job away does the same."""
        ...

    async def operate(
        self, verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None
    ) -> list[ActionResult]:
        """Cancel, pause, resume, retry or submit jobs. All are checked before any is written."""
        ...

    async def delete(self, ids: Sequence[int]) -> list[int]:
        """Remove jobs that nobody has leased, with their events. Answers which."""
        ...

    async def read(self, ids: Sequence[int]) -> dict[int, Job]:
        """Jobs by id, live or finished."""
        ...

    async def events(self, job_id: int) -> list[Event]:
        """The kept events of a job, oldest first."""
        ...

    async def events_after(self, event_id: int, limit: int) -> list[Event]:
        """Events of all jobs with larger ids, in order: each is seen by whoever asks on from
        the last that it got, also one whose transaction commits after those of later ones."""
        ...

    async def newest_event(self) -> int:
        """The largest id of an event, 0 if there is none: where to follow from."""
        ...

    async def notes(self, job_id: int) -> list[LogLine]:
        """The kept lines of a job's log, oldest first."""
        ...

    async def page(self, filter: JobFilter) -> JobPage:
        """Jobs, newest first."""
        ...

    async def depth(self, queues: Sequence[str], bound: int = DEPTH_BOUND) -> int:
        """How many jobs can be claimed right now, counted up to a bound."""
        ...

    async def counts(self) -> JobCounts:
        """Live jobs by what they wait for."""
        ...

    async def queues(self) -> list[QueueInfo]:
        """Queues that have jobs or settings."""
        ...

    async def doors(self, queue: str) -> list[QueueRules]:
        """What somebody has said about a queue, and about all of them together."""
        ...

    async def pause_queue(
        self, name: str, by: str, reason: str | None, until: datetime | None
    ) -> None:
        """Nothing of the queue is claimed until it is resumed, or until a time."""
        ...

    async def resume_queue(self, name: str) -> bool:
        """Answers whether it was paused."""
        ...

    async def set_queue_limit(self, name: str, limit: Limit) -> None:
        """Of a queue, or of all together (``*``). From now on; what is leased stays leased."""
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
        """The limit that the tenants of this database share, and who uses it."""
        ...

    async def key_limits(self) -> list[NamedLimit]:
        """Every rule for limit_keys."""
        ...

    async def key_use(self, key: str) -> LimitUse:
        """How a limit_key stands: its rule, and how much of it is used."""
        ...

    async def pause_lane(
        self, target: str, by: str, reason: str | None, until: datetime | None
    ) -> None:
        """Nothing of the lane is started until it is resumed, or until a time."""
        ...

    async def resume_lane(self, target: str) -> bool:
        """Answers whether it was paused."""
        ...

    async def lanes(self, after: str, limit: int) -> list[LaneInfo]:
        """Lanes that have jobs or a pause, by target."""
        ...

    async def retain(self, history_days: float, limit: int) -> int:
        """Forget finished jobs, events and keys older than this; makes room ahead of need.
        Answers how many ranges (PostgreSQL) or rows (SQLite) went. Repeat while it is > 0."""
        ...

    async def beat(self, beat: Heartbeat, beat_seconds: float) -> None:
        """A worker says that it lives; it is listed for this long. Nothing is decided by it."""
        ...

    async def leave(self, owner: str) -> None:
        """A worker that has ended is listed no more."""
        ...

    async def workers(self) -> list[LiveWorker]:
        """Workers that were heard lately, in the order in which they came."""
        ...

    async def forget_workers(self, silent_seconds: float) -> int:
        """Remove those whose word expired this long ago. Answers how many."""
        ...

    async def tenants(self) -> list[Tenant]:
        """The directory, by name. Of the control store; others know no tenants."""
        ...

    async def tenant(self, name: str) -> Tenant | None:
        """One line of the directory."""
        ...

    async def add_tenant(
        self, name: str, place: str, weight: float = 1.0, max_slots: int | None = None
    ) -> Tenant | None:
        """None: one of this name is there already."""
        ...

    async def remove_tenant(self, name: str) -> bool:
        """Answers whether it was there."""
        ...

    async def set_tenant_state(
        self, name: str, state: TenantState, note: str | None = None
    ) -> bool:
        """With who and why. Answers False where there is none, or it is on its way elsewhere."""
        ...

    async def set_tenant_share(self, name: str, weight: float, max_slots: int | None) -> bool:
        """Its share of the workers, and how many slots of a process it may have at most."""
        ...

    async def begin_move(self, name: str, place: str, note: str | None = None) -> bool:
        """Mark it as moving there. False: it moves elsewhere, or is not rid of its last move."""
        ...

    async def take_back_move(self, name: str, note: str | None = None) -> str | None:
        """It moves back to where it is. Answers the place that may have a copy of it."""
        ...

    async def end_move(
        self, name: str, place: str, state: TenantState, note: str | None = None
    ) -> bool:
        """From now on it lives there. False: it was not moving there any more."""
        ...

    async def forget_move(self, name: str) -> None:
        """Nothing is left where it came from."""
        ...

    async def now(self) -> datetime:
        """The store's clock, which decides."""
        ...
