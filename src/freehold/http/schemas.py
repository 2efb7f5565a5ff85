"""The parameters and bodies of requests, with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from freehold.model.audit import AuditKind
from freehold.model.bulk import BulkVerb
from freehold.model.flow import FlowState
from freehold.model.job import PRIORITY_LIMIT
from freehold.model.limit import LIMIT_CEILING
from freehold.model.meta import MetaValue
from freehold.model.names import KEY_LENGTH_LIMIT, REASON_LIMIT
from freehold.model.retry import MAX_ATTEMPTS_LIMIT, WAIT_LIMIT_SECONDS
from freehold.model.schedule import JITTER_LIMIT_SECONDS, CatchUp, Overlap
from freehold.model.search import LENGTH_LIMIT
from freehold.model.state import State
from freehold.model.tenant import HOME_SHARD
from freehold.model.timing import EXPRESSION_LENGTH_LIMIT, LONGEST_INTERVAL_SECONDS
from freehold.model.waiting import Replaceable, Until
from freehold.operations.input_checks import LARGEST_ID
from freehold.operations.pictures import SPANS_LIMIT
from freehold.operator_schedules import NEXT_RUNS_LIMIT
from freehold.store.types import PAGE_LIMIT

T = TypeVar("T")

Id = Annotated[int, Meta(ge=1, le=LARGEST_ID)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$")]
ScheduleName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,89}$")]
Key = Annotated[str, Meta(min_length=1, max_length=KEY_LENGTH_LIMIT)]
Reason = Annotated[str, Meta(max_length=REASON_LIMIT)]
By = Annotated[str, Meta(min_length=1, max_length=100)]
Timestamp = Annotated[datetime, Meta(tz=True)]
Span = Annotated[float, Meta(ge=0.001, le=WAIT_LIMIT_SECONDS)]
WeightValue = Annotated[float, Meta(ge=0.001, le=1_000_000)]
SlotCount = Annotated[int, Meta(ge=1, le=10_000)]
TenantName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
ShardName = TenantName
Wait = Annotated[float, Meta(ge=0, le=WAIT_LIMIT_SECONDS)]
#: For how long a response waits at most for the end of a job: proxies end longer requests.
RESULT_WAIT_SECONDS = 60.0


def value_or_none(value: T | UnsetType) -> T | None:
    """None for a parameter that is missing. A URL cannot contain null, only the text "null"."""
    return None if value is UNSET else value


class JobPath(msgspec.Struct, frozen=True):
    id: Id


class LanePath(msgspec.Struct, frozen=True):
    target: Key
    id: Id


class QueuePath(msgspec.Struct, frozen=True):
    name: Name


class TargetPath(msgspec.Struct, frozen=True):
    target: Key


class TenantPath(msgspec.Struct, frozen=True):
    tenant: TenantName


class KeyPath(msgspec.Struct, frozen=True):
    key: Key


class ShowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Private fields to include, which need the role operator. ``wait``: for so many seconds the
    response waits until the job has ended."""

    args: bool = False
    trace: bool = False
    wait: Annotated[float, Meta(ge=0, le=RESULT_WAIT_SECONDS)] = 0.0


class ExplainQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The jobs of a list, at most 50, by repeated ``id``."""

    id: tuple[Id, ...]


class JobListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter of jobs. ``q`` is a search such as ``state:failed queue:mail since:2h``, for fields
    that are not given beside it. ``meta`` is ``key=value``, its value JSON or text; ``error`` the
    type of the error, with its module or without it; ``worker`` the owner of the lease, or of the
    attempt that ended the job. ``before`` is the ``next`` of the previous page."""

    q: Annotated[str, Meta(max_length=LENGTH_LIMIT)] = ""
    state: tuple[State, ...] = ()
    queue: Name | UnsetType = UNSET
    task: Name | UnsetType = UNSET
    target: Key | UnsetType = UNSET
    tag: Name | UnsetType = UNSET
    meta: tuple[str, ...] = ()
    error: Key | UnsetType = UNSET
    worker: Key | UnsetType = UNSET
    created_since: Timestamp | UnsetType = UNSET
    created_until: Timestamp | UnsetType = UNSET
    finished_since: Timestamp | UnsetType = UNSET
    finished_until: Timestamp | UnsetType = UNSET
    before: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 50
    args: bool = False


class JobFilterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter of jobs, with at least one field."""

    states: tuple[State, ...] = ()
    queue: Name | None = None
    task: Name | None = None
    target: Key | None = None
    tag: Name | None = None
    meta: dict[Key, MetaValue] = {}
    error: Key | None = None
    worker: Key | None = None
    created_since: Timestamp | None = None
    created_until: Timestamp | None = None
    finished_since: Timestamp | None = None
    finished_until: Timestamp | None = None


class AmendmentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What ``amend`` changes of waiting jobs."""

    priority: Annotated[int, Meta(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT)] | None = None
    queue: Name | None = None
    run_at: Timestamp | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_LIMIT)] | None = None


class AmendBody(AmendmentBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is changed of a waiting job, with the reason and the author."""

    reason: Reason | None = None
    by: By | None = None


class CloneBody(AmendBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a clone has instead of the old job's values; ``args`` is an object by parameter name."""

    args: dict[str, Any] | None = None


class BulkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One verb on all jobs of a filter, with the reason and the author. ``changes`` is for
    ``amend``."""

    verb: BulkVerb
    filter: JobFilterBody
    changes: AmendmentBody | None = None
    reason: Reason | None = None
    by: By | None = None


class PreviewBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One verb on chosen jobs. ``changes`` is for ``amend``."""

    verb: Literal["cancel", "pause", "resume", "retry", "submit", "delete", "amend"]
    ids: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=PAGE_LIMIT)]
    changes: AmendmentBody | None = None


class BulkListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before`` is the ``next`` of the previous page."""

    before: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 50


class RetentionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After how many days finished jobs are deleted; null removes the rule."""

    days: Annotated[float, Meta(ge=0, le=36_500)] | None = None
    reason: Reason | None = None
    by: By | None = None


class AuditQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter of changes by operators. ``subject`` (the id of a job, or a name) needs a ``kind``.
    ``before`` is the ``next`` of the previous page."""

    by: Key | UnsetType = UNSET
    verb: Name | UnsetType = UNSET
    kind: AuditKind | UnsetType = UNSET
    subject: Key | UnsetType = UNSET
    before: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 50


class LaneJobsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``around``: the id of a job of the lane; ``limit``: how many before and after it."""

    around: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class AttemptsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``until`` is now by default."""

    since: Timestamp
    until: Timestamp | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=SPANS_LIMIT)] = SPANS_LIMIT


class LaneListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after`` is the ``next`` of the previous page."""

    after: Key | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class QueueListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after`` is the ``next`` of the previous page."""

    after: Name | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = PAGE_LIMIT


class EventsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after``: the id of the last event received, as in the header Last-Event-ID; without it the
    stream begins now. ``follow=false``: only the events that exist already."""

    after: Annotated[int, Meta(ge=0, le=LARGEST_ID)] | UnsetType = UNSET
    follow: bool = True


class ActionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason and the author, both for the job's history."""

    reason: Reason | None = None
    by: By | None = None


class RetryBody(ActionBody, frozen=True, forbid_unknown_fields=True):
    """``from_step``: the job, finished or paused, runs again from this step; it and the later steps
    are deleted."""

    from_step: Key | None = None


class PauseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason and author of a pause, and its end; without one it lasts until it is resumed."""

    reason: Reason | None = None
    by: By | None = None
    until: Timestamp | None = None


class LimitBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``max``: the maximum number of running jobs. ``rate``: the maximum rate of starts, such as
    ``100/min``. The reason and the author are for the audit."""

    max: Annotated[int, Meta(ge=0, le=LIMIT_CEILING)] | None = None
    rate: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    reason: Reason | None = None
    by: By | None = None


class WeightBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of a queue; the default is 1."""

    weight: WeightValue


class NewTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a tenant, its shard, and its share of the workers."""

    name: TenantName
    shard: ShardName = HOME_SHARD
    weight: WeightValue = 1.0
    max_slots: SlotCount | None = None


class TenantShareBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of a tenant (the default is 1), and its maximum number of slots in one process."""

    weight: WeightValue
    max_slots: SlotCount | None = None


class DropTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name again, so that a mistake in the URL destroys nothing. ``force``: drop it even if it
    has live jobs, which are lost."""

    name: TenantName
    force: bool = False


class EnqueueBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job. Missing options are those of the task. ``raw``: the task is not known to this
    service; its arguments are checked only as JSON. ``secret_args``: the names of arguments that
    are shown nowhere, besides those that the task marks."""

    task: Name
    args: dict[str, Any] = {}
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT)] | None = None
    run_at: Timestamp | None = None
    delay_seconds: Wait | None = None
    start_by: Timestamp | None = None
    start_by_seconds: Span | None = None
    target: Key | None = None
    limit_key: Key | None = None
    unique_key: Key | None = None
    idempotency_key: Key | None = None
    idempotency_seconds: Span | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_LIMIT)] | None = None
    timeout_seconds: Span | None = None
    tags: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    secret_args: Annotated[tuple[Key, ...], Meta(max_length=100)] = ()
    meta: dict[Key, MetaValue] | None = None
    unique_until: Until | None = None
    replace: tuple[Replaceable, ...] = ()
    debounce_key: Key | None = None
    debounce_seconds: Span | None = None
    debounce_at_most_seconds: Span | None = None
    throttle_key: Key | None = None
    throttle_seconds: Span | None = None
    pending: bool = False
    raw: bool = False


class SignalBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A signal: its name, its value as JSON, and for how long it is kept, 30 days by default."""

    name: Key
    value: Any = None
    keep_seconds: Span | None = None
    by: By | None = None


class SignalListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after`` is the ``next`` of the previous page."""

    after: Key | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class FlowListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before`` is the ``next`` of the previous page."""

    kind: Literal["batch", "gather", "workflow"] | UnsetType = UNSET
    state: FlowState | UnsetType = UNSET
    before: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 50


class FlowMembersQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after`` is the ``next`` of the previous page."""

    state: tuple[State, ...] = ()
    after: Annotated[int, Meta(ge=0, le=LARGEST_ID)] = 0
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class SchedulePath(msgspec.Struct, frozen=True):
    name: ScheduleName


class ScheduleListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after`` is the ``next`` of the previous page."""

    after: ScheduleName | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class NextRunsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many ticks."""

    count: Annotated[int, Meta(ge=1, le=NEXT_RUNS_LIMIT)] = 5


class ScheduleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A schedule: ``cron`` in ``zone``, or ``every_seconds``; and the job that each tick makes, as
    for enqueueing. For the policies see docs/schedules.md."""

    job: EnqueueBody
    cron: Annotated[str, Meta(min_length=1, max_length=EXPRESSION_LENGTH_LIMIT)] | None = None
    zone: Annotated[str, Meta(min_length=1, max_length=60)] = "UTC"
    every_seconds: Annotated[float, Meta(ge=1, le=LONGEST_INTERVAL_SECONDS)] | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    within_seconds: Annotated[float, Meta(ge=1, le=LONGEST_INTERVAL_SECONDS)] | None = None
    jitter_seconds: Annotated[float, Meta(ge=0, le=JITTER_LIMIT_SECONDS)] = 0.0
    ends_at: Timestamp | None = None
    reason: Reason | None = None
    by: By | None = None


class BackfillBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first and the last tick, both in the past."""

    since: Timestamp
    until: Timestamp
    reason: Reason | None = None
    by: By | None = None
