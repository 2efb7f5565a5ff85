"""What a host needs to know of tenants: who there is, where they live, and whom to tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from freehold.model.tenant import Tenant
from freehold.store.shard import Shard


class TenantSource(Protocol):
    """Which tenants there are, as a host sees it."""

    async def tenants(self) -> Sequence[Tenant]:
        """All that this process should serve, whatever their state."""
        ...

    def place(self, name: str) -> Shard:
        """The same object each time. Raises BadSettings where this process knows no such place."""
        ...

    async def degrade(self, tenant: str, why: str) -> None:
        """It is broken, and left alone."""
        ...

    async def heal(self, tenant: str) -> None:
        """It works again."""
        ...
