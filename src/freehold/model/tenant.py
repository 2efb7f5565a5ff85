"""A tenant: jobs of its own, in a schema or file of its own, which nobody else's touch."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

import msgspec

from freehold.errors import BadName

#: Where tenants live unless they were placed elsewhere: beside the directory itself.
HOME_SHARD = "home"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}", re.ASCII)


class TenantState(StrEnum):
    """Active; paused by a person; on its way to another place; or broken, and left alone."""

    ACTIVE = "active"
    PAUSED = "paused"
    MOVING = "moving"
    DEGRADED = "degraded"


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the directory: where a tenant lives, and its share of the workers."""

    name: str
    #: The name of a database in the settings (`[places]`), or HOME.
    place: str = HOME_SHARD
    state: TenantState = TenantState.ACTIVE
    weight: float = 1.0
    #: At most so many of its jobs at a time in one process; None: as many as there are slots.
    max_slots: int | None = None
    created_at: datetime
    #: Who paused it and why, or what is broken.
    note: str | None = None
    #: Where it goes, while it moves; and where something of it was left behind.
    moving_to: str | None = None
    moved_from: str | None = None


def check_tenant(name: object) -> str:
    """Part of a schema's and of a file's name, so the whitelist is narrow."""
    return _checked("tenant", name)


def check_shard(name: object) -> str:
    """As narrow: it is part of a variable's name in the environment."""
    return _checked("place", name)


def _checked(what: str, name: object) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise BadName(
        f"{what} {name!r} is not a usable name: use 1 to 31 lower-case letters, digits or '_', "
        "starting with a letter"
    )
