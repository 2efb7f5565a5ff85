"""What a database offers besides verbs: sessions, migrations, a name for messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from freehold.store.statements import AsyncSession, Session


class Migration(msgspec.Struct, frozen=True):
    """A numbered step of the schema."""

    version: int
    name: str
    sql: str


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that `doctor` looked at."""

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
        """Raises OutcomeUnknown where nobody can say whether it happened."""
        ...

    def rollback(self) -> None: ...


class AsyncTransaction(Protocol):
    """The same for asyncio."""

    async def begin(self) -> Any: ...

    @property
    def session(self) -> AsyncSession: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class Database(Protocol):
    """A place where jobs live."""

    @property
    def shown(self) -> str:
        """The address, without secrets."""
        ...

    def session(self) -> Session: ...

    def async_session(self) -> AsyncSession: ...

    def caller_session(self, connection: Any) -> Session:
        """Work inside the caller's own open transaction."""
        ...

    def async_caller_session(self, connection: Any) -> AsyncSession: ...

    def transaction(self) -> Transaction: ...

    def async_transaction(self) -> AsyncTransaction: ...

    async def listen(self, heard: Callable[[str | None], None]) -> None:
        """Pass on hints that something changed, until cancelled; reconnects by itself.

        ``heard`` gets a hint (see `hints`), "" where the store cannot say what changed, and None
        when hints may be lost from now on.
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

    def diagnose(self) -> list[Diagnosis]:
        """What a person should know about this database."""
        ...

    def close(self) -> None:
        """Give back what blocking callers used."""
        ...

    async def aclose(self) -> None:
        """Give back what the running event loop used."""
        ...
