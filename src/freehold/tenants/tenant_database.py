"""A tenant's database, wherever it lives just now."""

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
    """One database to whoever uses it, through all moves."""

    def __init__(self, name: str, lookup: DirectoryCache, places: Shards) -> None:
        self.name = name
        self._lookup = lookup
        self._places = places

    def _at(self, line: Tenant) -> Database:
        return self._places[line.place].open(self.name)

    # -- where it is -------------------------------------------------------------------------

    def current(self) -> Database:
        return self._at(self._lookup.line(self.name))

    async def acurrent(self) -> Database:
        return self._at(await self._lookup.aline(self.name))

    def look_again(self, missing: SchemaMissing) -> None:
        _check_settled(self._lookup.line(self.name, anew=True), missing)

    async def alook_again(self, missing: SchemaMissing) -> None:
        _check_settled(await self._lookup.aline(self.name, anew=True), missing)

    @property
    def shown(self) -> str:
        line = self._lookup.line(self.name)
        return f"tenant {self.name} in {self._places[line.place].shown}"

    # -- sessions ----------------------------------------------------------------------------

    def session(self) -> Session:
        return RelocatableSession(self)

    def async_session(self) -> AsyncSession:
        return AsyncRelocatableSession(self)

    def caller_session(self, connection: Any) -> Session:
        """In the caller's own transaction, which cannot follow anybody to another server."""
        return self._last().caller_session(connection)

    def async_caller_session(self, connection: Any) -> AsyncSession:
        return self._last().async_caller_session(connection)

    def transaction(self) -> Transaction:
        return self._last().transaction()

    def async_transaction(self) -> AsyncTransaction:
        return self._last().async_transaction()

    def _last(self) -> Database:
        return self._at(self._lookup.last(self.name))

    async def listen(self, heard: Callable[[str | None], None]) -> None:
        """Where it lives; and elsewhere, soon after it has moved."""
        while True:
            try:
                await self._listen_here(heard)
            except FreeholdError as error:  # it is gone, or nobody can say where it is
                log.debug("listening ended: %s", error)
                await asyncio.sleep(CACHE_SECONDS)
            heard(None)

    async def _listen_here(self, heard: Callable[[str | None], None]) -> None:
        line = await self._lookup.aline(self.name)
        listening = asyncio.create_task(self._at(line).listen(heard))
        try:
            while (await self._lookup.aline(self.name)).place == line.place:
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

    def diagnose(self) -> list[Diagnosis]:
        return self.current().diagnose()

    def close(self) -> None:
        """Its connections are those of its place."""

    async def aclose(self) -> None:
        """Those of the running loop, which may end now."""
        await self._places.aclose()
        await self._lookup.aclose()


def _check_settled(line: Tenant, missing: SchemaMissing) -> None:
    if line.state is TenantState.MOVING:
        raise StoreUnavailable(
            f"tenant {line.name} is being moved to {line.moving_to}: try again in a moment"
        ) from missing
