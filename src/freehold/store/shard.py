"""A place: one database server, or one folder, with the tenants that live there.

The directory (see `directory`) says which tenant lives where. A place opens its tenants'
databases, which share connections, and watches all of them at once, so that an idle tenant
costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from freehold.store.database import Database


class TenantActivity(msgspec.Struct, frozen=True):
    """What a look at a tenant has shown: whether it has something to do, or what is broken."""

    tenant: str
    has_work: bool
    trouble: str | None = None


class Shard(Protocol):
    """Where tenants live."""

    @property
    def shown(self) -> str:
        """The address, without secrets."""
        ...

    def open(self, tenant: str) -> Database:
        """The tenant's database, on the connections of the place. The same object each time."""
        ...

    def create(self, tenant: str) -> None:
        """Make its schema or file, up to date. Raises TenantExists."""
        ...

    def drop(self, tenant: str) -> None:
        """Remove it with everything in it."""
        ...

    async def awake(self, tenants: Sequence[str]) -> list[TenantActivity]:
        """Look at all of these at once: one statement on PostgreSQL. Something to do is: a job
        that is ready or due, or a lease that has run out. A broken one spoils nobody's answer."""
        ...

    async def listen(
        self, tenants: Callable[[], Sequence[str]], heard: Callable[[str, str | None], None]
    ) -> None:
        """Pass on (tenant, hint) for these tenants over one connection, until cancelled; ("", None)
        when hints of all may be lost from now on. ``tenants`` is asked again every few seconds."""
        ...

    def use_few(self) -> None:
        """Many workers of this process share its connections: a few at a time are enough."""

    def close(self) -> None: ...

    async def aclose(self) -> None: ...
