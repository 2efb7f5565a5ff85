"""A tenant's database, in whichever shard it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from freehold.errors import FreeholdError, SchemaMissing, StoreUnavailable
from freehold.model.tenant import Tenant, TenantState
from freehold.store.database import AsyncTransaction, Database, Diagnosis, Migration, Transaction
from freehold.store.statements import AsyncSession, Session
from freehold.telemetry import log
from freehold.tenants.directory_cache import CACHE_SECONDS, DirectoryCache
from freehold.tenants.relocatable_session import AsyncRelocatableSession, RelocatableSession
from freehold.tenants.shards import Shards


class TenantDatabase:
    """Finds its shard in the directory, and follows the tenant when it moves."""

    def __init__(self, name: str, directory: DirectoryCache, shards: Shards) -> None:
        self.name = name
        self._directory = directory
        self._shards = shards

    def _open(self, tenant: Tenant) -> Database:
        return self._shards[tenant.shard].open(self.name)

    # -- the shard ---------------------------------------------------------------------------

    def current(self) -> Database:
        return self._open(self._directory.get(self.name))

    async def acurrent(self) -> Database:
        return self._open(await self._directory.aget(self.name))

    def refresh(self, missing: SchemaMissing) -> None:
        _check_not_moving(self._directory.get(self.name, refresh=True), missing)

    async def arefresh(self, missing: SchemaMissing) -> None:
        _check_not_moving(await self._directory.aget(self.name, refresh=True), missing)

    @property
    def shown(self) -> str:
        tenant = self._directory.get(self.name)
        return f"tenant {self.name} in {self._shards[tenant.shard].shown}"

    # -- sessions ----------------------------------------------------------------------------

    def session(self) -> Session:
        return RelocatableSession(self)

    def async_session(self) -> AsyncSession:
        return AsyncRelocatableSession(self)

    def caller_session(self, connection: Any) -> Session:
        """In the caller's transaction, which cannot follow the tenant to another server."""
        return self._last_known().caller_session(connection)

    def async_caller_session(self, connection: Any) -> AsyncSession:
        return self._last_known().async_caller_session(connection)

    def transaction(self) -> Transaction:
        return self._last_known().transaction()

    def async_transaction(self) -> AsyncTransaction:
        return self._last_known().async_transaction()

    def _last_known(self) -> Database:
        return self._open(self._directory.last_known(self.name))

    async def listen(self, on_notification: Callable[[str | None], None]) -> None:
        """Listens in the tenant's shard, and in the new one soon after a move."""
        while True:
            try:
                await self._listen_in_shard(on_notification)
            except FreeholdError as error:  # the tenant, or the directory, cannot be reached
                log.debug("listening ended: %s", error)
                await asyncio.sleep(CACHE_SECONDS)
            on_notification(None)

    async def _listen_in_shard(self, on_notification: Callable[[str | None], None]) -> None:
        tenant = await self._directory.aget(self.name)
        listening = asyncio.create_task(self._open(tenant).listen(on_notification))
        try:
            while (await self._directory.aget(self.name)).shard == tenant.shard:
                await asyncio.wait((listening,), timeout=CACHE_SECONDS)
        finally:
            listening.cancel()
            await asyncio.wait((listening,))

    # -- the rest ----------------------------------------------------------------------------

    def pending(self) -> list[Migration]:
        return self.current().pending()

    def migrate(self) -> list[Migration]:
        return self.current().migrate()

    def migration_sql(self) -> list[Migration]:
        return self.current().migration_sql()

    def diagnose(self, *, deep: bool = False) -> list[Diagnosis]:
        return self.current().diagnose(deep=deep)

    def close(self) -> None:
        """The connections belong to the shard."""

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._shards.aclose()
        await self._directory.aclose()


def _check_not_moving(tenant: Tenant, missing: SchemaMissing) -> None:
    if tenant.state is TenantState.MOVING:
        raise StoreUnavailable(
            f"tenant {tenant.name} is being moved to {tenant.moving_to}: try again in a moment"
        ) from missing
