"""A schema in a PostgreSQL database."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Coroutine
from typing import Any

from psycopg import Connection
from psycopg.errors import LockNotAvailable

from freehold.errors import StoreUnavailable
from freehold.model.names import check_name, check_schema
from freehold.store.database import (
    Diagnosis,
    Migration,
    ServerOptions,
    SessionOptions,
    check_not_newer,
)
from freehold.store.postgres import sequences
from freehold.store.postgres.caller_drivers import async_caller_connection, caller_connection
from freehold.store.postgres.caller_transaction import AsyncCallerSession, CallerSession
from freehold.store.postgres.connections import POOL_SIZE, Connections
from freehold.store.postgres.doctor import diagnose
from freehold.store.postgres.handler_transaction import (
    AsyncPostgresTransaction,
    PostgresTransaction,
)
from freehold.store.postgres.listener import listen
from freehold.store.postgres.session import (
    AsyncPipelinedSession,
    AsyncPostgresSession,
    PipelinedSession,
    PostgresSession,
    Statements,
)
from freehold.store.sqlfiles import load_migrations
from freehold.store.statements import AsyncSession, Session
from freehold.store.url import redacted

_PACKAGE = "freehold.store.postgres"
#: How long a migration waits for a table that is in use, and how often it tries.
_LOCK_TIMEOUT = "500ms"
_MIGRATE_TRIES = 60
_DEFAULT_OPTIONS = SessionOptions()


class PostgresDatabase:
    """All names are qualified by the schema, whose name is checked against a whitelist."""

    def __init__(
        self,
        url: str,
        schema: str = "freehold",
        pool_size: int = POOL_SIZE,
        connections: Connections | None = None,
        *,
        options: ServerOptions = _DEFAULT_OPTIONS,
        must_exist: bool = False,
        control: str | None = None,
    ) -> None:
        """``connections``: shared ones, which their owner closes; otherwise they are opened with
        these ``options``. ``must_exist``: a late process must not create a schema again that was
        moved or dropped. ``control``: the control schema, if this is the schema of a tenant."""
        self.url = url
        self.schema = check_schema(schema)
        # One number for the schema, so that lanes of two schemas never share an advisory lock.
        key = str(zlib.crc32(schema.encode()))
        self._statements = Statements(schema, key, control)
        self._caller_statements = Statements(schema, key, control, draws_checked=True)
        self._connections = connections or Connections(url, pool_size, options)
        self._owns_connections = connections is None
        self._pool = self._connections.pool
        self._must_exist = must_exist

    @property
    def shown(self) -> str:
        return redacted(self.url)

    # -- sessions ----------------------------------------------------------------------------

    def session(self) -> Session:
        kind = PipelinedSession if self._connections.pipelined else PostgresSession
        return kind(self._pool, self._statements)

    def async_session(self) -> AsyncSession:
        kind = AsyncPipelinedSession if self._connections.pipelined else AsyncPostgresSession
        return kind(self._connections.pool_of_loop, self._statements)

    def caller_session(self, connection: Any) -> Session:
        return CallerSession(caller_connection(connection), self._caller_statements)

    def async_caller_session(self, connection: Any) -> AsyncSession:
        return AsyncCallerSession(async_caller_connection(connection), self._caller_statements)

    def transaction(self) -> PostgresTransaction:
        connections = self._connections
        return PostgresTransaction(
            connections.handler_pool, self._statements, connections.answer_seconds
        )

    def async_transaction(self) -> AsyncPostgresTransaction:
        connections = self._connections
        return AsyncPostgresTransaction(
            connections.handler_pool_of_loop(), self._statements, connections.answer_seconds
        )

    def listen(self, on_notification: Callable[[str | None], None]) -> Coroutine[Any, Any, None]:
        return listen(self._connections.conninfo, f"freehold_{self.schema}", on_notification)

    # -- migrations --------------------------------------------------------------------------

    def migration_sql(self) -> list[Migration]:
        return [
            Migration(version, name, self._script(version, name, sql))
            for version, name, sql in load_migrations(_PACKAGE)
        ]

    def _script(self, version: int, name: str, sql: str) -> str:
        """With its own bookkeeping, so that a DBA can run it by hand."""
        schema = "" if self._must_exist else f"create schema if not exists {self.schema};\n"
        return (
            f"{schema}create table if not exists {self.schema}.migration (\n"
            "    version integer primary key, name text not null,\n"
            "    applied_at timestamptz not null default now());\n"
            f"insert into {self.schema}.migration (version, name) "
            f"values ({version}, '{check_name('migration', name)}');\n\n"
            f"{sql.replace('{schema}', self.schema)}"
        )

    def pending(self) -> list[Migration]:
        with self._pool.connection(writes=False) as connection:
            return self._pending(connection)

    def migrate(self) -> list[Migration]:
        """One transaction for each migration, one migrator at a time: a kill leaves whole steps.
        Sequences that a restore left behind are advanced."""
        applied: list[Migration] = []
        while (migration := self._migrate_one()) is not None:
            applied.append(migration)
        with self._pool.connection(writes=True) as connection, connection.transaction():
            sequences.advance(connection, self.schema)
        return applied

    def migrate_within(self, connection: Connection[Any]) -> None:
        """In the caller's transaction, for a schema that no other process can see yet."""
        for migration in self._pending(connection):
            connection.execute(migration.sql.encode())

    def _migrate_one(self) -> Migration | None:
        """A migration that waits for a table lock blocks every later statement on that table, lease
        renewals included. So it uses a short lock_timeout and retries."""
        tries = 0
        while True:
            try:
                return self._try_migrate_one()
            except StoreUnavailable as error:
                tries += 1
                if tries >= _MIGRATE_TRIES or not isinstance(error.__cause__, LockNotAvailable):
                    raise

    def _try_migrate_one(self) -> Migration | None:
        with self._pool.connection(writes=True) as connection, connection.transaction():
            # Released at the end of the transaction, also by a crash.
            connection.execute(
                "select pg_advisory_xact_lock(hashtextextended(%s, 0))",
                (f"freehold migrate {self.schema}",),
            )
            connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'".encode())
            pending = self._pending(connection)
            if not pending:
                return None
            connection.execute(pending[0].sql.encode())
            return pending[0]

    def _pending(self, connection: Connection[Any]) -> list[Migration]:
        known = self.migration_sql()
        table = f"{self.schema}.migration"
        found = connection.execute("select to_regclass(%s) is not null", (table,)).fetchone()
        applied = 0
        if found is not None and found[0]:
            row = connection.execute(f"select max(version) from {table}".encode()).fetchone()
            applied = (row and row[0]) or 0
        check_not_newer(self.shown, applied, known)
        return [migration for migration in known if migration.version > applied]

    # -- the rest ----------------------------------------------------------------------------

    def diagnose(self, *, deep: bool = False) -> list[Diagnosis]:
        with self._pool.connection(writes=False) as connection:
            pending = self._pending(connection)
            return diagnose(connection, self.schema, len(pending))

    def close(self) -> None:
        if self._owns_connections:
            self._connections.close()

    async def aclose(self) -> None:
        if self._owns_connections:
            self._connections.close_current_loop()
