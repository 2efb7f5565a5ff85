"""The directory, for a process that serves tenants: see `worker/host.py`."""

from __future__ import annotations

from collections.abc import Collection

from leasehold.model.tenant import Tenant, TenantState, check_tenant
from leasehold.store.database import Database
from leasehold.store.faces import AwaitedStore
from leasehold.store.places import Place
from leasehold.tenancy.known import KnownPlaces
from leasehold.tenancy.lookup import existing

_NOTE_LIMIT = 500


class Served:
    """All tenants, or those that were named."""

    def __init__(
        self, control: Database, places: KnownPlaces, names: Collection[str] | None
    ) -> None:
        self._store = AwaitedStore(control.async_session())
        self._places = places
        self._names = None if names is None else {check_tenant(name) for name in names}

    async def check(self) -> None:
        """Raises TenantNotFound for a name that nobody has."""
        for name in sorted(self._names or ()):
            await self._store.run(existing(name))

    async def tenants(self) -> list[Tenant]:
        every = await self._store.tenants()
        return [each for each in every if self._names is None or each.name in self._names]

    def place(self, name: str) -> Place:
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
