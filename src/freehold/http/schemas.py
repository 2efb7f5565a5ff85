"""What can be said to the API: paths, queries and bodies, with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from freehold.model.job import IDEMPOTENCY_SECONDS, PRIORITY_LIMIT
from freehold.model.job_log import REASON_LIMIT
from freehold.model.limit import LIMIT_CEILING
from freehold.model.names import KEY_LENGTH_LIMIT
from freehold.model.retry import MAX_ATTEMPTS_LIMIT, WAIT_LIMIT_SECONDS
from freehold.model.state import State
from freehold.model.tenant import HOME_SHARD
from freehold.operator import LARGEST_ID
from freehold.store.types import PAGE_LIMIT

T = TypeVar("T")

Id = Annotated[int, Meta(ge=1, le=LARGEST_ID)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$")]
Key = Annotated[str, Meta(min_length=1, max_length=KEY_LENGTH_LIMIT)]
Reason = Annotated[str, Meta(max_length=REASON_LIMIT)]
By = Annotated[str, Meta(min_length=1, max_length=100)]
Moment = Annotated[datetime, Meta(tz=True)]
Span = Annotated[float, Meta(ge=0.001, le=WAIT_LIMIT_SECONDS)]
WeightValue = Annotated[float, Meta(ge=0.001, le=1_000_000)]
SlotCount = Annotated[int, Meta(ge=1, le=10_000)]
TenantName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
ShardName = TenantName
Wait = Annotated[float, Meta(ge=0, le=WAIT_LIMIT_SECONDS)]


def given(value: T | UnsetType) -> T | None:
    """What an address leaves out. It is not null there: that would be the text "null"."""
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
    """What is left out unless asked for. Only an operator may ask."""

    args: bool = False
    trace: bool = False


class JobListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which jobs; newest first. ``before`` is the ``next`` of the page before."""

    state: tuple[State, ...] = ()
    queue: Name | UnsetType = UNSET
    task: Name | UnsetType = UNSET
    target: Key | UnsetType = UNSET
    tag: Name | UnsetType = UNSET
    before: Id | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 50
    args: bool = False


class LaneListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By target; ``after`` is the ``next`` of the page before."""

    after: Key | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = 100


class EventsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From which event on (the header Last-Event-ID says the same); without, from now on.
    ``follow=false``: only what is there already."""

    after: Annotated[int, Meta(ge=0, le=LARGEST_ID)] | UnsetType = UNSET
    follow: bool = True


class ActionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why, and on whose behalf; both are kept with the job."""

    reason: Reason | None = None
    by: By | None = None


class EmptyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing has to be said."""


class PauseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why, on whose behalf, and until when; without, until it is resumed."""

    reason: Reason | None = None
    by: By | None = None
    until: Moment | None = None


class LimitBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most so many at a time; so many starts within a time, as ``100/min``."""

    max: Annotated[int, Meta(ge=0, le=LIMIT_CEILING)] | None = None
    rate: Annotated[str, Meta(min_length=1, max_length=40)] | None = None


class WeightBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The queue's share, beside 1 for every other queue."""

    weight: WeightValue


class NewTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Its name, in which place it lives, and its share of the workers."""

    name: TenantName
    place: ShardName = HOME_SHARD
    weight: WeightValue = 1.0
    max_slots: SlotCount | None = None


class TenantShareBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant's share beside 1 for every other, and its slots in one process."""

    weight: WeightValue
    max_slots: SlotCount | None = None


class DropTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name once more, so that no slip of an address loses anything; ``force``: also with live
    jobs, which are lost."""

    name: TenantName
    force: bool = False


class EnqueueBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job. What is left out is as the task says. ``raw``: of a task whose code is not here;
    its arguments are checked only as JSON."""

    task: Name
    args: dict[str, Any] = {}
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT)] | None = None
    run_at: Moment | None = None
    delay_seconds: Wait | None = None
    target: Key | None = None
    limit_key: Key | None = None
    unique_key: Key | None = None
    idempotency_key: Key | None = None
    idempotency_seconds: Span = IDEMPOTENCY_SECONDS
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_LIMIT)] | None = None
    timeout_seconds: Span | None = None
    tags: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    pending: bool = False
    raw: bool = False
