"""Sessions of a tenant's database, which can move to another shard.

At the old shard the schema is missing, and a statement group that raises SchemaMissing has written
nothing. So the session reads the directory again and executes the group once more in the shard
found there, even if that is the same one: a move that is canceled between the failure and the
lookup leaves the database in its old shard.
"""

from __future__ import annotations

from typing import Protocol

from freehold.errors import SchemaMissing
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup

#: A schema that is missing so often in the shard of the directory is really missing.
_TRIES = 3


class Relocatable(Protocol):
    """A database whose shard can change."""

    def current(self) -> Database: ...

    async def acurrent(self) -> Database: ...

    def refresh(self, missing: SchemaMissing) -> None:
        """Reads the directory again, for the next current(). Raises StoreUnavailable while the
        database is being moved."""
        ...

    async def arefresh(self, missing: SchemaMissing) -> None: ...


class RelocatableSession:
    """Blocking."""

    def __init__(self, database: Relocatable) -> None:
        self._database = database

    def execute(self, group: StatementGroup) -> list[Rows]:
        tries = _TRIES
        while True:
            try:
                return self._database.current().session().execute(group)
            except SchemaMissing as missing:
                self._database.refresh(missing)
                tries -= 1
                if not tries:
                    raise


class AsyncRelocatableSession:
    """The same for asyncio."""

    def __init__(self, database: Relocatable) -> None:
        self._database = database

    async def execute(self, group: StatementGroup) -> list[Rows]:
        tries = _TRIES
        while True:
            try:
                database = await self._database.acurrent()
                return await database.async_session().execute(group)
            except SchemaMissing as missing:
                await self._database.arefresh(missing)
                tries -= 1
                if not tries:
                    raise
