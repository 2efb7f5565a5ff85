"""A database: sessions, transactions, migrations, diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from freehold.errors import SchemaMissing, SchemaTooNew
from freehold.store.statements import AsyncSession, Session


class ServerOptions(Protocol):
    """How a server is used; the settings of the store are these. SQLite has no server.

    ``session``: "pipelined" or "plain". ``answer_seconds``: how long the answer to one statement
    may take, before its connection is dropped.
    """

    @property
    def session(self) -> str: ...

    @property
    def answer_seconds(self) -> float: ...


class SessionOptions(msgspec.Struct, frozen=True):
    """The defaults."""

    session: str = "pipelined"
    answer_seconds: float = 10.0


class Migration(msgspec.Struct, frozen=True):
    """A numbered step of the schema."""

    version: int
    name: str
    sql: str


class Diagnosis(msgspec.Struct, frozen=True):
    """One check of `doctor`."""

    name: str
    good: bool
    detail: str


class Transaction(Protocol):
    """A transaction for a handler to fill: begun, then committed or rolled back, once."""

    def begin(self) -> Any:
        """The driver's own connection, inside the transaction."""
        ...

    @property
    def session(self) -> Session:
        """Works inside the transaction. Raises BadInput if the handler has ended it."""
        ...

    def commit(self) -> None:
        """Raises OutcomeUnknown where it is unknown whether it happened."""
        ...

    def rollback(self) -> None: ...

    def interrupt(self) -> None:
        """Called in another thread: a statement of the handler that waits for its server raises the
        driver's error, and so do all later ones. No effect once the transaction ends."""
        ...


class AsyncTransaction(Protocol):
    """The same for asyncio."""

    async def begin(self) -> Any: ...

    @property
    def session(self) -> AsyncSession: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class Database(Protocol):
    """Stores the jobs."""

    @property
    def shown(self) -> str:
        """The URL, without secrets."""
        ...

    def session(self) -> Session: ...

    def async_session(self) -> AsyncSession: ...

    def caller_session(self, connection: Any) -> Session:
        """Work inside the caller's own open transaction."""
        ...

    def async_caller_session(self, connection: Any) -> AsyncSession: ...

    def transaction(self) -> Transaction: ...

    def async_transaction(self) -> AsyncTransaction: ...

    async def listen(self, on_notification: Callable[[str | None], None]) -> None:
        """Pass on notifications until canceled; reconnects by itself.

        The callback gets a topic (see `notifications`), "" where the store does not know what
        changed, and None when notifications may be lost from now on.
        """
        ...

    def pending(self) -> list[Migration]:
        """What `migrate` would apply. Raises SchemaTooNew."""
        ...

    def migrate(self) -> list[Migration]:
        """Bring the schema up to date; safe when several do it at once, or are killed."""
        ...

    def migration_sql(self) -> list[Migration]:
        """The migrations as they would be executed here."""
        ...

    def diagnose(self, *, deep: bool = False) -> list[Diagnosis]:
        """Checks of this database, for people. ``deep``: also those that read all of it."""
        ...

    def close(self) -> None:
        """Close the connections of blocking callers."""
        ...

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        ...


def check_not_newer(where: str, applied: int, known: Sequence[Migration]) -> None:
    newest = known[-1].version
    if applied > newest:
        raise SchemaTooNew(
            f"{where} has schema version {applied}, this program knows up to {newest}: "
            "upgrade freehold here, or use the version that migrated the database"
        )


def check_migrated(database: Database) -> None:
    """Raise SchemaMissing with what to do, before anything else fails less clearly."""
    if pending := database.pending():
        raise SchemaMissing(
            f"{database.shown} needs {len(pending)} migration(s): run `freehold migrate`"
        )
