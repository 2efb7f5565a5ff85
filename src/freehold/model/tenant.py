"""A tenant: a separate set of jobs, in its own schema or file."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

import msgspec

from freehold.errors import BadName

#: The default shard of new tenants: the store that holds the directory.
HOME_SHARD = "home"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}", re.ASCII)


class TenantState(StrEnum):
    """Active; paused by an operator; moving to another shard; or broken and not served for now."""

    ACTIVE = "active"
    PAUSED = "paused"
    MOVING = "moving"
    DEGRADED = "degraded"


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the directory: the tenant's shard, state, and share of the workers."""

    name: str
    #: The name of a database in the settings (`[shards]`), or HOME_SHARD.
    shard: str = HOME_SHARD
    state: TenantState = TenantState.ACTIVE
    weight: float = 1.0
    #: How many of its jobs may run at once in one process; None: as many as it has slots.
    max_slots: int | None = None
    created_at: datetime
    #: The operator and the reason of a pause, or the error of a degraded tenant.
    note: str | None = None
    #: The target shard of a move, and the old shard until its data is dropped.
    moving_to: str | None = None
    moved_from: str | None = None


def check_tenant(name: object) -> str:
    """The name becomes part of a schema's or a file's name, so the whitelist is narrow."""
    if name == "all":
        raise BadName(
            "tenant 'all' is not a usable name: it stands for all tenants; choose another"
        )
    return _checked("tenant", name)


def check_shard(name: object) -> str:
    """The same whitelist: the name becomes part of an environment variable's name."""
    return _checked("shard", name)


def _checked(what: str, name: object) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise BadName(
        f"{what} {name!r} is not a usable name: use 1 to 31 lower-case letters, digits or '_', "
        "starting with a letter"
    )
