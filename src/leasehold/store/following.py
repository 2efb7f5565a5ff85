"""Sessions of a database that can move.

Whoever comes to its old place finds nothing there, and nothing was written. So a batch that hears
SchemaMissing asks where it is now, and is executed once more there.
"""

from __future__ import annotations

from typing import Protocol

from leasehold.errors import SchemaMissing
from leasehold.store.database import Database
from leasehold.store.steps import Batch, Rows


class Movable(Protocol):
    """Says where it is, and where it went."""

    def current(self) -> Database: ...

    async def acurrent(self) -> Database: ...

    def moved(self, tried: Database | None, missing: SchemaMissing) -> Database:
        """Where it is now; raises what the caller should hear if that is where we have tried."""
        ...

    async def amoved(self, tried: Database | None, missing: SchemaMissing) -> Database: ...


class FollowingSession:
    """Blocking."""

    def __init__(self, movable: Movable) -> None:
        self._movable = movable

    def execute(self, batch: Batch) -> list[Rows]:
        tried: Database | None = None
        try:
            tried = self._movable.current()
            return tried.session().execute(batch)
        except SchemaMissing as missing:
            elsewhere = self._movable.moved(tried, missing)
        return elsewhere.session().execute(batch)


class AsyncFollowingSession:
    """The same for asyncio."""

    def __init__(self, movable: Movable) -> None:
        self._movable = movable

    async def execute(self, batch: Batch) -> list[Rows]:
        tried: Database | None = None
        try:
            tried = await self._movable.acurrent()
            return await tried.async_session().execute(batch)
        except SchemaMissing as missing:
            elsewhere = await self._movable.amoved(tried, missing)
        return await elsewhere.async_session().execute(batch)
