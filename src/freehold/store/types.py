"""The values that the verbs of a store take and return."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from freehold.decoders import decoder
from freehold.model.flow import Flow
from freehold.model.job import Attempt, Job, JobEnd, StopRequest
from freehold.model.job_log import Progress
from freehold.model.limit import Limit
from freehold.model.live_jobs import DEPTH_BOUND as DEPTH_BOUND
from freehold.model.live_jobs import FEW_QUEUES as FEW_QUEUES
from freehold.model.live_jobs import LANE_LIST_BOUND as LANE_LIST_BOUND
from freehold.model.live_jobs import MANY_QUEUES_BOUND as MANY_QUEUES_BOUND
from freehold.model.live_jobs import QUEUE_LIST_BOUND as QUEUE_LIST_BOUND
from freehold.model.live_jobs import JobCounts as JobCounts
from freehold.model.live_jobs import LaneInfo as LaneInfo
from freehold.model.live_jobs import QueueInfo as QueueInfo
from freehold.model.meta import MetaValue
from freehold.model.outcome import Decision, Outcome
from freehold.model.state import State
from freehold.model.step import StepKind

PAGE_LIMIT = 1000
#: A session of the dashboard ends after so long, and if it was not used for so long.
LIFETIME_SECONDS = 12 * 3600.0
IDLE_SECONDS = 2 * 3600.0


class QueueDemand(msgspec.Struct, frozen=True):
    """How many jobs of a queue a worker can take; ``ahead`` of them would not start at once."""

    queue: str
    count: int
    ahead: int = 0


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The owner, the length of its leases, and its demand. ``tasks=None``: it can run any task."""

    owner: str
    lease_seconds: float
    demands: tuple[QueueDemand, ...]
    tasks: frozenset[str] | None = None


class LeaseKey(msgspec.Struct, frozen=True):
    """A job and its token: with the owner's name, the proof of ownership."""

    job_id: int
    token: int


class Renewed(msgspec.Struct, frozen=True):
    """The leases that hold, with their stop request; and those that are lost."""

    held: dict[int, StopRequest | None]
    lost: tuple[int, ...]


class NewLogLine(msgspec.Struct, frozen=True):
    """A log line of a handler: its number within the attempt, and its age."""

    number: int
    text: str
    ago_seconds: float


class LogChunk(msgspec.Struct, frozen=True):
    """Progress and log lines of an attempt since the last write."""

    lease: LeaseKey
    progress: Progress | None
    lines: tuple[NewLogLine, ...]


class NewStep(msgspec.Struct, frozen=True):
    """A step of an attempt: its name and its position among the steps of the job."""

    lease: LeaseKey
    name: str
    number: int
    kind: StepKind = StepKind.RESULT
    value: bytes | None = None
    hidden: bool = False
    #: Until the end of a wait.
    seconds: float | None = None


class AwaitedSignal(msgspec.Struct, frozen=True):
    """The step of a job that waits for a signal: what it is now, and the seconds that are left."""

    kind: StepKind
    value: str | None
    left_seconds: float


class GatheredEnd(msgspec.Struct, frozen=True, array_like=True):
    """How a gathered job has ended; None: it was deleted."""

    job_id: int
    end: JobEnd | None


class Gathered(msgspec.Struct, frozen=True):
    """The jobs that a handler has gathered; and how they have ended, None while one has not."""

    flow: int
    jobs: tuple[int, ...]
    ends: tuple[GatheredEnd, ...] | None = None

    @classmethod
    def of_step(cls, kind: StepKind, value: str | None) -> Gathered:
        """The value of a stored step: the children, or how they have ended."""
        if kind is StepKind.GATHERED:
            return cls(0, (), tuple(_ends_of(value or "[]")))
        return _children_of(value or "")


_ends_of = decoder(list[GatheredEnd]).decode
_children_of = decoder(Gathered).decode


class CreatedFlow(msgspec.Struct, frozen=True):
    """A stored workflow, and the jobs of its nodes by number, of groups several. ``created``: False
    if a live workflow with its key existed before, whose id this is."""

    id: int
    created: bool
    jobs: dict[int, list[int]] = {}


class AttemptEnd(msgspec.Struct, frozen=True, gc=False):
    """An attempt and its outcome; ``request`` is the stop request that its worker knew."""

    attempt: Attempt
    outcome: Outcome
    request: StopRequest | None = None
    chance: float = 0.5


class Finished(msgspec.Struct, frozen=True):
    """The decision for each accepted end, by job id; the jobs whose lease was lost; and the flows
    of members that have ended, or may have."""

    decisions: dict[int, Decision]
    lost: tuple[int, ...]
    flows: tuple[int, ...] = ()


class Recovered(msgspec.Struct, frozen=True):
    """A job recovered from an expired lease."""

    attempt: Attempt
    decision: Decision


class FlowLoad(msgspec.Struct, frozen=True):
    """Flows and what is left to do for them, each up to a bound: open flows, those with something
    to act upon, and ends of members that are not counted yet."""

    open: int
    due: int
    ends: int


class Advanced(msgspec.Struct, frozen=True):
    """What folding and acting on flows led to: how many jobs became ready, or were stored; whether
    something is left to do; and callbacks and nodes that the database refused. ``stands_still``:
    nothing was left but flows whose acts it refuses, now and probably again."""

    jobs: int = 0
    is_left: bool = False
    problems: tuple[str, ...] = ()
    stands_still: bool = False


class SetAside(msgspec.Struct, frozen=True):
    """A job that was paused because the database refuses to claim or recover it, and the error."""

    job_id: int
    reason: str


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list; a job matches if it matches every field that is set.

    ``meta``: pairs that the job's metadata contains; numbers are equal by value.
    ``error``: the type of the error with which a job failed, with its module or without it.
    ``worker``: the owner of the lease, or of the attempt that ended the job. A time range includes
    its beginning and not its end; only finished jobs have a time of finishing. Ids follow the time
    of creation, and the reading ends where jobs are a minute older than ``created_since``.
    ``before``: the cursor that the previous page returned.
    """

    states: frozenset[State] = frozenset()
    queue: str | None = None
    task: str | None = None
    target: str | None = None
    tag: str | None = None
    meta: dict[str, MetaValue] = {}
    error: str | None = None
    worker: str | None = None
    created_since: datetime | None = None
    created_until: datetime | None = None
    finished_since: datetime | None = None
    finished_until: datetime | None = None
    before: int | None = None
    limit: int = 50


class JobPage(msgspec.Struct, frozen=True):
    """Newest first. ``next`` is the cursor of the next page, None after the last.

    A page reads a bounded number of rows: with a rare filter it can be short, or even
    empty, and still have a next one. ``looked_until`` is how far it has looked: the creation time
    of the oldest job that was examined, None if all have been.
    """

    jobs: tuple[Job, ...]
    next: int | None
    looked_until: datetime | None = None


class FlowPage(msgspec.Struct, frozen=True):
    """Flows, newest first. ``next``: the ``before`` of the next page, None after the last."""

    flows: tuple[Flow, ...]
    next: int | None


class MemberPage(msgspec.Struct, frozen=True):
    """Members of a flow in the order of their ids. ``next``: the id after which to continue."""

    jobs: tuple[Job, ...]
    next: int | None


class RetentionKind(StrEnum):
    """What a rule of retention selects."""

    QUEUE = "queue"
    TASK = "task"


class RetentionRule(msgspec.Struct, frozen=True):
    """Finished jobs of a queue or of a task are deleted after so many days."""

    kind: RetentionKind
    name: str
    days: float


class NamedLimit(msgspec.Struct, frozen=True):
    """A limit and its name: a queue, all queues, a limit_key, or a class of keys."""

    name: str
    limit: Limit


class SweepCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep would find: expired leases, jobs that wait for a limit_key, lanes whose pause
    has ended, parked jobs of known tasks, and misfits of known tasks. And when the next job, and
    the next schedule, is due, and when the next job is too late to start (0: now), whether a bulk
    operation runs, whether signals are undelivered, whether flows have ends to fold or something to
    act upon, and how many workers are alive, all of which sweep."""

    expired: bool
    limited: bool
    ended_lane_pauses: bool
    parked: bool
    misfits: bool
    due_seconds: float | None
    schedule_seconds: float | None
    late_seconds: float | None
    bulk: bool
    signals: bool
    flows: bool
    workers: int


class Firing(msgspec.Struct, frozen=True):
    """What one batch of due schedules led to: how many were seen, how many jobs were made, how many
    ticks were skipped or missed, and the problems of those that could not be fired."""

    seen: int = 0
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    problems: tuple[str, ...] = ()


class Misfit(msgspec.Struct, frozen=True):
    """A parked job whose arguments did not fit the code of the worker that claimed it."""

    job_id: int
    task: str
    args: str
    #: It has waited long enough for a worker whose code fits.
    misfit_time_is_over: bool


class LaneScan(msgspec.Struct, frozen=True):
    """Lanes without a holder that got one; and the last lane of the scan, "" at the end."""

    freed: tuple[str, ...]
    reached: str
    #: Next jobs that could not be promoted.
    aside: tuple[SetAside, ...] = ()


class WebSession(msgspec.Struct, frozen=True):
    """A session of the dashboard. ``digest`` is that of its cookie."""

    digest: str
    token_digest: str
    #: As its user wrote it; not verified.
    author: str | None
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
