"""What a host needs of the directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from freehold.model.tenant import Tenant
from freehold.store.shard import Shard


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
