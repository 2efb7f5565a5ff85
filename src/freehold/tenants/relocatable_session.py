"""Sessions of a database that can move.

At its old place a database is missing, and a batch that raises SchemaMissing has written nothing.
So such a batch looks up the place anew and is executed again, also where it has just failed: a
move that was taken back between the failure and the lookup leaves the database where it was.
"""

from __future__ import annotations

from typing import Protocol

from freehold.errors import SchemaMissing
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup

#: A database that is missing so often, where the directory says that it is, is really missing.
_TRIES = 3


class Relocatable(Protocol):
    """Knows where it is, and can look it up anew."""

    def current(self) -> Database: ...

    async def acurrent(self) -> Database: ...

    def look_again(self, missing: SchemaMissing) -> None:
        """From now on current() is what the directory says now. Raises StoreUnavailable while the
        database is on its way."""
        ...

    async def alook_again(self, missing: SchemaMissing) -> None: ...


class RelocatableSession:
    """Blocking."""

    def __init__(self, movable: Relocatable) -> None:
        self._movable = movable

    def execute(self, batch: StatementGroup) -> list[Rows]:
        tries = _TRIES
        while True:
            try:
                return self._movable.current().session().execute(batch)
            except SchemaMissing as missing:
                self._movable.look_again(missing)
                tries -= 1
                if not tries:
                    raise


class AsyncRelocatableSession:
    """The same for asyncio."""

    def __init__(self, movable: Relocatable) -> None:
        self._movable = movable

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        tries = _TRIES
        while True:
            try:
                database = await self._movable.acurrent()
                return await database.async_session().execute(batch)
            except SchemaMissing as missing:
                await self._movable.alook_again(missing)
                tries -= 1
                if not tries:
                    raise
