"""A job in each phase of its life: requested, stored, leased, attempted, finished.

Each phase has its own type, so that no field is "set later".
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic

import msgspec

from freehold.model.job_log import Progress
from freehold.model.meta import MetaValue, decode_meta
from freehold.model.policy import DEFAULT_POLICY, Policy, unpack
from freehold.model.retry import DEFAULT_RETRY
from freehold.model.secrets import hide_arguments
from freehold.model.state import Stage, State
from freehold.model.timestamps import StoredTime, maybe_time
from freehold.model.waiting import Waiting

if TYPE_CHECKING:
    # The default is for type checkers: `NewJob` alone is a `NewJob[Any]`.
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

PRIORITY_LIMIT = 30_000
DEFAULT_QUEUE = "default"
IDEMPOTENCY_SECONDS = 24 * 3600.0

#: No worker may be configured with longer leases.
LONGEST_LEASE_SECONDS = 1_000_000


class StopRequest(StrEnum):
    """An operator's request to the worker that holds the lease of a job."""

    CANCEL = "cancel"
    PAUSE = "pause"


class NewJob(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, gc=False):
    """A checked request to run a task. Building one writes nothing. For type checkers it has the
    type of its result, as `JobHandle` has."""

    task: str
    args: bytes = b"{}"
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: datetime | None = None
    delay_seconds: float | None = None
    target: str | None = None
    limit_key: str | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    idempotency_seconds: float = IDEMPOTENCY_SECONDS
    max_attempts: int = DEFAULT_RETRY.max_attempts
    timeout_seconds: float | None = None
    tags: tuple[str, ...] = ()
    policy: Policy = DEFAULT_POLICY
    pending: bool = False
    #: Checked metadata as JSON; None if there is none.
    meta_json: str | None = None
    #: The key that the job holds until a worker takes it.
    waiting: Waiting | None = None
    #: It is canceled if it has not started by then: a time, or seconds after it falls due.
    start_by: datetime | float | None = None

    def __repr__(self) -> str:
        return _repr(self, self.policy)

    @property
    def is_due_at_once(self) -> bool:
        if self.waiting is not None and self.waiting.throttle_seconds is not None:
            return False  # the store decides
        return self.run_at is None and not self.delay_seconds and not self.pending


def _repr(job: NewJob | Attempt, policy: Policy) -> str:
    """Without secret arguments: a repr often ends up in a log."""
    if policy.secret_args:
        text = job.args if isinstance(job.args, str) else job.args.decode()
        hidden: Any = hide_arguments(text, policy.secret_args)
        job = msgspec.structs.replace(job, args=hidden)
    return msgspec.Struct.__repr__(job)


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The id of a stored job, or of the job with the same key that existed before. ``replaced``: it
    got values of this call. ``stored_time``: `created_at` as the store returned it."""

    id: int
    created: bool
    replaced: bool = False
    stored_time: StoredTime | None = None

    @property
    def created_at(self) -> datetime | None:
        """By the database's clock; None if the job has ended. Most callers never read it."""
        return maybe_time(self.stored_time)


class Lease(msgspec.Struct, frozen=True):
    """The owner of a job, its token, and its expiry by the database's clock."""

    owner: str
    token: int
    expires_at: datetime
    leased_at: datetime
    heartbeat_at: datetime
    started_at: datetime | None


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One leased attempt, as its worker gets it: enough to run it and to decide its outcome.

    A worker holds up to a thousand of these. They cannot form reference cycles, so they opt out of
    the cyclic garbage collector (``gc=False``), and so do the types of their ends.
    """

    job_id: int
    owner: str
    token: int
    task: str
    queue: str
    args: str
    number: int
    max_attempts: int
    lost_attempts: int
    priority: int
    target: str | None
    timeout_seconds: float | None
    policy_json: str | None
    limit_key: str | None = None
    meta_json: str | None = None
    #: It was parked for a worker whose code fits its arguments, and that time is over.
    misfit_time_is_over: bool = False

    def __repr__(self) -> str:
        return _repr(self, self.policy)

    @property
    def policy(self) -> Policy:
        return unpack(self.policy_json)

    @property
    def meta(self) -> dict[str, MetaValue]:
        return decode_meta(self.meta_json)


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why an attempt failed, as text that is safe to store and show."""

    #: With its module, as ``builtins.ValueError``; without one if no exception was raised
    #: (``Timeout``, ``ProcessDied``), and in rows of older versions.
    type: str
    message: str
    trace: str | None = None


class Report(msgspec.Struct, frozen=True):
    """How a job finished: state, result or error, attempts, timings."""

    state: State
    finished_at: datetime
    attempts: int
    result: Any
    error: ErrorInfo | None
    finished_by: str | None
    token: int | None
    leased_at: datetime | None
    started_at: datetime | None
    waited_seconds: float | None
    ran_seconds: float | None


class JobEnd(msgspec.Struct, frozen=True):
    """How a job has ended, for a caller that waits for its result."""

    task: str
    state: State
    #: JSON as it was stored, also if it is secret: see docs/decisions/0037.
    result: str | None
    error: ErrorInfo | None
    reason: str | None

    def __repr__(self) -> str:
        return f"<JobEnd of {self.task}: {self.state}>"


class Job(msgspec.Struct, frozen=True):
    """A stored job, live or finished."""

    id: int
    task: str
    queue: str
    state: State
    stage: Stage | None
    priority: int
    args: str
    attempt: int
    max_attempts: int
    lost_attempts: int
    target: str | None
    limit_key: str | None
    unique_key: str | None
    tags: tuple[str, ...]
    timeout_seconds: float | None
    policy_json: str | None
    created_at: datetime
    run_at: datetime
    stop_request: StopRequest | None
    stop_requested_by: str | None
    stop_request_reason: str | None
    reason: str | None
    lease: Lease | None
    report: Report | None
    #: The latest progress that a handler reported, in any attempt.
    progress: Progress | None = None
    meta: dict[str, MetaValue] = {}
    #: Until a worker takes the job, no other job waits with this key.
    waiting_key: str | None = None
    #: It is canceled if it has not started by then. None once it has started.
    start_by: datetime | None = None
    #: What a suspended job waits for, until its run_at: see `model/suspension.py`.
    waits_for: str | None = None

    @property
    def policy(self) -> Policy:
        return unpack(self.policy_json)
