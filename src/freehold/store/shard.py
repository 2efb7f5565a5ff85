"""Shards: database servers or folders that hold tenants.

The directory (`verbs/tenant_directory.py`) names the shard of each tenant. A shard opens the
databases of its tenants, which share connections, and checks all of them at once, so that an idle
tenant costs next to nothing.

A tenant that moves is *retired* on its old shard: its tables get other names, so that a late
process finds no table and cannot write. The copy on its new shard appears whole, in one step, and
retired as well. So at most one shard has the tenant under its own name at any time, and a process
with an outdated row of the directory finds either the tenant or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from freehold.errors import BadInput, TenantExists
from freehold.store.database import Database

#: The name under which a tenant is paused while it moves; that pause ends with the move.
MOVER = "tenants-move"


class TenantActivity(msgspec.Struct, frozen=True):
    """Whether a tenant has work, or what is broken."""

    tenant: str
    has_work: bool
    error: str | None = None


class Shard(Protocol):
    """Holds tenants."""

    @property
    def shown(self) -> str:
        """The URL, without secrets."""
        ...

    def open(self, tenant: str) -> Database:
        """The tenant's database, on the connections of the shard. The same object each time."""
        ...

    def create(self, tenant: str) -> None:
        """Create its schema or file, up to date. Raises TenantExists."""
        ...

    def drop(self, tenant: str, *, only_if_empty: bool = False) -> bool:
        """Remove it with everything in it. ``only_if_empty``: False, and nothing done, if it has a
        live job or a schedule. The check and the removal are one step: a concurrent enqueue is
        seen, or fails."""
        ...

    async def tenants_with_work(self, tenants: Sequence[str]) -> list[TenantActivity]:
        """Check these tenants at once: one statement on PostgreSQL. Work is a job that is ready or
        due, or an expired lease. A broken tenant does not affect the others."""
        ...

    async def listen(
        self,
        tenants: Callable[[], Sequence[str]],
        on_notification: Callable[[str, str | None], None],
    ) -> None:
        """Pass on (tenant, topic) for these tenants over one connection, until canceled; ("",
        None) when notifications may be lost from now on. ``tenants`` is called every few seconds.
        """
        ...

    def share_connections(self) -> None:
        """Use few connections, because many workers of this process share them."""

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class MovableShard(Shard, Protocol):
    """A shard that tenants can move from and to. Each step can be repeated."""

    def holds(self, tenant: str) -> bool:
        """Whether its schema or file exists here, retired or not."""
        ...

    def move_lock(self, tenant: str) -> AbstractContextManager[bool]:
        """False if another process moves it from or to here. Ends with the block, or with the
        process."""
        ...

    def is_retired(self, tenant: str) -> bool: ...

    def retire(self, tenant: str) -> bool:
        """Prevents all writes from now on. False, and nothing done, while a job is leased."""
        ...

    def restore(self, tenant: str) -> None:
        """Undo `retire`."""
        ...

    def drop_retired(self, tenant: str) -> None: ...

    def copy_from(self, tenant: str, source: Any) -> None:
        """Copy the retired tenant from there, all or nothing. The copy is retired too, until
        `restore`. Does nothing if it is retired here already. Raises TenantExists."""
        ...


def already_has(shard: Shard, tenant: str) -> TenantExists:
    return TenantExists(f"{shard.shown} already has a tenant {tenant}: drop that one first")


def cannot_move(source: Shard, goal: Shard) -> BadInput:
    return BadInput(
        f"cannot move from {source.shown} to {goal.shown}: they are stores of different kinds"
    )
