"""The embedded store: one file, which needs no setup."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Coroutine
from functools import cache
from pathlib import Path
from typing import Any

from freehold.clock import Micros, system_micros
from freehold.errors import BadInput, SchemaMissing, StoreError
from freehold.model.plural import count
from freehold.store.database import (
    AsyncTransaction,
    Diagnosis,
    Migration,
    Transaction,
    check_not_newer,
)
from freehold.store.sqlfiles import (
    Property,
    load_migrations,
    load_statements,
    script,
    statements_with,
)
from freehold.store.sqlite.caller_transaction import SqliteCallerSession, connection_of_django
from freehold.store.sqlite.engine import Engine, Script, is_foreign
from freehold.store.sqlite.handler_transaction import (
    AsyncFileTransaction,
    AsyncMemoryTransaction,
    AsyncSqliteSavepointSession,
    SqliteSavepointSession,
    SqliteTransaction,
    session_inside,
)
from freehold.store.sqlite.listener import LocalNotifier, OnNotification, listen
from freehold.store.sqlite.session import AsyncSqliteSession, GroupWriter, SqliteSession
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.statements import AsyncSession, Session

_PACKAGE = "freehold.store.sqlite"
_OLDEST = (3, 35, 0)  # the first with RETURNING
_LEAST_FREE_BYTES = 100_000_000


class SqliteDatabase:
    """A file, or with path None a database in memory that ends with this object."""

    def __init__(
        self, path: Path | None, clock: Micros = system_micros, *, must_exist: bool = False
    ) -> None:
        """``must_exist``: a late process must not create a file again that was moved or dropped."""
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old: Freehold needs 3.35 or newer"
            )
        self.path = path
        self._notifier = LocalNotifier()
        self._engine = Engine(path, _scripts(), clock, self._notifier.notify, must_exist=must_exist)
        self._writer = GroupWriter(self._engine) if path is not None else None
        if not self._is_current():  # the first use creates the schema
            self._migrate()
        self._engine.create_no_more()

    @property
    def shown(self) -> str:
        return f"sqlite:///{self.path}" if self.path is not None else "sqlite://:memory:"

    def session(self) -> Session:
        return SqliteSession(self._engine, self._writer)

    def async_session(self) -> AsyncSession:
        return AsyncSqliteSession(self._engine, self._writer)

    def caller_session(self, connection: Any) -> Session:
        of_django = connection_of_django(connection, self.path)
        if of_django is not None:
            return SqliteCallerSession(self._engine, of_django)
        return self._session_of(connection)

    def async_caller_session(self, connection: Any) -> AsyncSession:
        return AsyncSqliteSavepointSession(self._session_of(connection))

    def _session_of(self, connection: Any) -> SqliteSavepointSession:
        """Only the connection of ctx.transaction() holds the write lock."""
        session = session_inside(self._engine)
        if session is not None and session.connection is connection:
            return session
        raise BadInput(
            f"connection={type(connection).__name__}: the embedded store accepts only the "
            "connection of ctx.transaction(), and Django's connection to the same file; use a "
            "PostgreSQL store, or enqueue after your commit"
        )

    def transaction(self) -> Transaction:
        return SqliteTransaction(self._engine)

    def async_transaction(self) -> AsyncTransaction:
        if self.path is None:
            return AsyncMemoryTransaction(self._engine)
        return AsyncFileTransaction(self._engine)

    def listen(self, on_notification: OnNotification) -> Coroutine[Any, Any, None]:
        if self.path is None:
            return self._notifier.listen(on_notification)
        return listen(self.path, on_notification)

    # -- migrations --------------------------------------------------------------------------

    def migration_sql(self) -> list[Migration]:
        return [Migration(*each) for each in load_migrations(_PACKAGE)]

    def pending(self) -> list[Migration]:
        with self._engine.transaction() as connection:
            return self._pending(connection)

    def migrate(self) -> list[Migration]:
        """Also adds the schema to a file of another program, which no other call does."""
        self._engine.adopt()
        return self._migrate()

    def _migrate(self) -> list[Migration]:
        """One transaction for all migrations: a kill leaves all or nothing."""
        with self._engine.transaction() as connection:
            pending = self._pending(connection)
            for migration in pending:
                for statement in script(migration.sql):
                    connection.execute(statement)
                connection.execute(f"pragma user_version = {migration.version}")
            return pending

    def _is_current(self) -> bool:
        """Does not wait for a writer, if the file exists already. A file of another program is left
        as it is: each use of it raises SchemaMissing."""
        if self.path is None or not self.path.exists():
            return False
        newest = self.migration_sql()[-1].version
        try:
            return self._engine.user_version() == newest
        except SchemaMissing:
            return True

    def _pending(self, connection: sqlite3.Connection) -> list[Migration]:
        known = self.migration_sql()
        applied = int(connection.execute("pragma user_version").fetchone()[0])
        if applied and is_foreign(connection):
            raise StoreError(
                f"{self.shown} is a file of another program, or of a tenant that was moved away: "
                "choose another file"
            )
        check_not_newer(self.shown, applied, known)
        return [migration for migration in known if migration.version > applied]

    # -- the rest ----------------------------------------------------------------------------

    def diagnose(self, *, deep: bool = False) -> list[Diagnosis]:
        pending = self.pending()
        checks = [
            Diagnosis("store", True, f"{self.shown}, SQLite {sqlite3.sqlite_version}"),
            Diagnosis("schema", not pending, f"{count(len(pending), 'migration')} pending"),
        ]
        if self.path is not None:
            checks += [_writable(self.path), _space(self.path)]
        if deep:
            checks.append(Diagnosis("integrity", *self._engine.integrity()))
        return checks

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._engine.close()

    async def aclose(self) -> None:
        """Event loops share the writer's thread, which ends with close()."""


def _writable(path: Path) -> Diagnosis:
    """SQLite creates files beside the store, so the folder must be writable too."""
    closed = [str(each) for each in (path, path.parent) if not os.access(each, os.W_OK)]
    detail = f"{' and '.join(closed)} cannot be written: check the mode" if closed else "yes"
    return Diagnosis("writable", not closed, detail)


def _space(path: Path) -> Diagnosis:
    free = shutil.disk_usage(path.parent).free
    detail = f"{free // 1_000_000:,} MB free"
    if free < _LEAST_FREE_BYTES:
        detail += ": a full disk refuses every write; free some space"
    return Diagnosis("space", free >= _LEAST_FREE_BYTES, detail)


@cache
def _scripts() -> dict[str, Script]:
    texts = load_statements(_PACKAGE, STAGE_SQL)
    not_notified = statements_with(Property.NOT_NOTIFIED, _PACKAGE)
    claims = statements_with(Property.FILLS_CANDIDATES, _PACKAGE)
    return {
        name: Script(
            parts := script(text),
            takes_whole_set=":rows" in text,
            is_notified=name not in not_notified,
            candidates=_filling_candidates(parts) if name in claims else None,
        )
        for name, text in texts.items()
    }


def _filling_candidates(parts: list[str]) -> str:
    (found,) = (part for part in parts if part.startswith("insert into candidate "))
    return found
