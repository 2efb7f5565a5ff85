"""The directory, for a process that serves tenants: see `tenants/host.py`."""

from __future__ import annotations

from collections.abc import Collection

from freehold.model.tenant import Tenant, TenantState, check_tenant
from freehold.store.database import Database
from freehold.store.shard import Shard
from freehold.store.store import AsyncStore
from freehold.tenants.directory_cache import existing
from freehold.tenants.shards import Shards

_NOTE_LIMIT = 500


class ServedTenants:
    """All tenants, or those that were named."""

    def __init__(self, control: Database, places: Shards, names: Collection[str] | None) -> None:
        self._store = AsyncStore(control.async_session())
        self._places = places
        self._names = None if names is None else {check_tenant(name) for name in names}

    async def check(self) -> None:
        """Raises TenantNotFound for a name that nobody has."""
        for name in sorted(self._names or ()):
            await self._store.run(existing(name))

    async def tenants(self) -> list[Tenant]:
        every = await self._store.tenants()
        return [each for each in every if self._names is None or each.name in self._names]

    def place(self, name: str) -> Shard:
        return self._places[name]

    async def degrade(self, tenant: str, why: str) -> None:
        await self._change(tenant, TenantState.ACTIVE, TenantState.DEGRADED, why[:_NOTE_LIMIT])

    async def heal(self, tenant: str) -> None:
        await self._change(tenant, TenantState.DEGRADED, TenantState.ACTIVE, None)

    async def _change(
        self, tenant: str, before: TenantState, after: TenantState, note: str | None
    ) -> None:
        """What a person has said meanwhile stays."""
        line = await self._store.tenant(tenant)
        if line is not None and line.state is before:
            await self._store.set_tenant_state(tenant, after, note)
