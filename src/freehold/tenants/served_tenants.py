"""The tenants that a host serves (`host.py`), as the directory lists them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from freehold.model.tenant import Tenant, TenantState, check_tenant
from freehold.store.database import Database
from freehold.store.shard import Shard
from freehold.store.store import AsyncStore
from freehold.tenants.directory_cache import get_tenant
from freehold.tenants.shards import Shards

_NOTE_LIMIT = 500


class TenantSource(Protocol):
    """The tenants and shards of a host."""

    async def tenants(self) -> Sequence[Tenant]:
        """All tenants of this process, in any state."""
        ...

    def shard(self, name: str) -> Shard:
        """The same object each time. Raises BadSettings if the shard is not configured."""
        ...

    async def degrade(self, tenant: str, error: str) -> None:
        """Record that the tenant is broken and not served."""
        ...

    async def heal(self, tenant: str) -> None:
        """Record that the tenant works again."""
        ...


class ServedTenants:
    """All tenants, or the named ones. `degrade` and `heal` leave a state that an operator has set
    meanwhile as it is."""

    def __init__(
        self,
        control: Database,
        shards: Shards,
        names: Collection[str] | None,
        without: Collection[str] = (),
    ) -> None:
        self.control = self._store = AsyncStore(control.async_session())
        self._shards = shards
        self._names = None if names is None else {check_tenant(name) for name in names}
        self._without = {check_tenant(name) for name in without}

    async def check(self) -> None:
        """Raises TenantNotFound for an unknown name."""
        for name in sorted(self._names or ()):
            await self._store.run(get_tenant(name))

    async def tenants(self) -> list[Tenant]:
        every = await self._store.tenants()
        return [
            each
            for each in every
            if each.name not in self._without and (self._names is None or each.name in self._names)
        ]

    def shard(self, name: str) -> Shard:
        return self._shards[name]

    async def degrade(self, tenant: str, error: str) -> None:
        note = error[:_NOTE_LIMIT]
        await self._store.set_tenant_state(
            tenant, TenantState.DEGRADED, note, before=TenantState.ACTIVE
        )

    async def heal(self, tenant: str) -> None:
        await self._store.set_tenant_state(
            tenant, TenantState.ACTIVE, None, before=TenantState.DEGRADED
        )
