"""Statement groups on PostgreSQL: blocking, for asyncio, and inside a transaction of a handler.

Each group is one transaction and, as a pipeline, one round trip. Nothing is ever left in a
session: no settings, no advisory locks that outlive a transaction, no search path.

These sessions use psycopg as its manual describes. `pipelined_session` has faster ones, on libpq,
which are the default; both pass the same tests.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.rows import tuple_row

from freehold.store.postgres.async_pool import AsyncPool
from freehold.store.postgres.errors import StatementNotPrepared, raise_as, translated
from freehold.store.postgres.pool import Pool
from freehold.store.postgres.pooled_connection import AsyncPooledConnection, PooledConnection
from freehold.store.sqlfiles import load_statements, numbered
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.statements import Rows, Statement, StatementGroup

#: A statement that was not prepared was not executed, and later connections prepare nothing. One
#: that was opened just before still may: hence more than two tries.
_TRIES = 3


class Statements:
    """The SQL of one schema, ready to be sent. Filled in at first use, because a process can serve
    hundreds of schemas."""

    def __init__(self, schema: str, schema_key: str, control: str | None = None) -> None:
        """``control``: the control schema, if this is the schema of a tenant."""
        self._names = {
            "@schema@": schema,
            "@schema_key@": schema_key,
            "@control@": control or schema,
        }
        self._texts: dict[str, tuple[bytes, tuple[str, ...]]] = {}

    def prepare(self, statement: Statement) -> tuple[bytes, list[Any]]:
        """SQL with numbered parameters, and their values; a set is sent as one JSON text."""
        text, names = self._texts.get(statement.name) or self._text(statement.name)
        return text, _values(statement, names)

    def prepare_lazily(self, statement: Statement) -> tuple[bytes, Callable[[], list[Any]]]:
        """The same, with values that are computed when it is sent."""
        text, names = self._texts.get(statement.name) or self._text(statement.name)
        return text, partial(_values, statement, names)

    def _text(self, name: str) -> tuple[bytes, tuple[str, ...]]:
        text, names = _templates()[name]
        for placeholder, filled in self._names.items():
            text = text.replace(placeholder, filled)
        return self._texts.setdefault(name, (text.encode(), names))


def _values(statement: Statement, names: tuple[str, ...]) -> list[Any]:
    if statement.rows is None:
        return list(map(statement.params.__getitem__, names))
    return [_value_beside_rows(statement, name) for name in names]


def _value_beside_rows(statement: Statement, name: str) -> Any:
    if name == "rows":
        return msgspec.json.encode(statement.rows).decode()
    if name == "calls":  # each is JSON already: quoted as a text it would be parsed twice
        return f"[{','.join(statement.params[name])}]"
    return statement.params[name]


@cache
def _templates() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Numbered, with placeholders for the schema: read once for all schemas."""
    placeholders = {"schema": "@schema@", "schema_key": "@schema_key@", "control": "@control@"}
    texts = load_statements("freehold.store.postgres", placeholders | STAGE_SQL)
    return {name: numbered(text) for name, text in texts.items()}


class PostgresSession:
    """Blocking; acquires a connection from the pool for each group. Uses psycopg's cursors: see
    `pipelined_session` for the faster one."""

    def __init__(self, pool: Pool, statements: Statements) -> None:
        self._pool = pool
        self._statements = statements

    def execute(self, group: StatementGroup) -> list[Rows]:
        pool, tries = self._pool, _TRIES
        while True:
            connection = pool.acquire()
            try:
                results = self._execute_on(connection, group)
            except BaseException as error:
                translation = pool.release_after(error, connection, writes=group.writes)
                tries -= 1
                if not (isinstance(translation, StatementNotPrepared) and tries):
                    raise_as(translation, error)
            else:
                pool.release(connection)
                return results

    def _execute_on(self, connection: PooledConnection, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in group.statements]
        if len(prepared) == 1 and not group.is_trial:
            results = [rows_of(connection, *prepared[0])]
        else:
            with connection.pipeline(), connection.transaction(force_rollback=group.is_trial):
                cursors = [
                    RawCursor(connection, row_factory=tuple_row).execute(*each) for each in prepared
                ]
                results = [_fetched(cursor) for cursor in cursors]
        if group.notification is not None:
            with suppress(psycopg.Error):
                rows_of(connection, *self._statements.prepare(group.notification))
        return results


class AsyncPostgresSession:
    """The same for asyncio, on the pool of the running loop."""

    def __init__(self, pool_of_loop: Callable[[], AsyncPool], statements: Statements) -> None:
        self._pool_of_loop = pool_of_loop
        self._statements = statements

    async def execute(self, group: StatementGroup) -> list[Rows]:
        pool, tries = self._pool_of_loop(), _TRIES
        while True:
            connection = await pool.acquire()
            try:
                results = await self._execute_on(connection, group)
            except BaseException as error:
                translation = pool.release_after(error, connection, writes=group.writes)
                tries -= 1
                if not (isinstance(translation, StatementNotPrepared) and tries):
                    raise_as(translation, error)
            else:
                pool.release(connection)
                return results

    async def _execute_on(
        self, connection: AsyncPooledConnection, group: StatementGroup
    ) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in group.statements]
        if len(prepared) == 1 and not group.is_trial:
            results = [await arows_of(connection, *prepared[0])]
        else:
            async with connection.pipeline(), connection.transaction(force_rollback=group.is_trial):
                cursors = [
                    await AsyncRawCursor(connection, row_factory=tuple_row).execute(*each)
                    for each in prepared
                ]
                results = [await _afetched(cursor) for cursor in cursors]
        if group.notification is not None:
            with suppress(psycopg.Error):
                await arows_of(connection, *self._statements.prepare(group.notification))
        return results


class PostgresSavepointSession:
    """Inside the transaction of a handler: each group is a savepoint of it.

    Until the commit a broken connection means that nothing was written, so that the error is never
    OutcomeUnknown.
    """

    def __init__(self, connection: Connection[Any], statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    def execute(self, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in all_statements(group)]
        with translated(writes=False), self._connection.transaction():
            results = [rows_of(self._connection, *each) for each in prepared]
        return results[: len(group.statements)]


class AsyncPostgresSavepointSession:
    """The same for asyncio."""

    def __init__(self, connection: AsyncConnection[Any], statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    async def execute(self, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in all_statements(group)]
        with translated(writes=False):
            async with self._connection.transaction():
                results = [await arows_of(self._connection, *each) for each in prepared]
        return results[: len(group.statements)]


def all_statements(group: StatementGroup) -> tuple[Statement, ...]:
    """With the notification: inside a larger transaction the server delivers it at the commit, so
    that it can be sent with the others."""
    if group.notification is None:
        return group.statements
    return (*group.statements, group.notification)


def rows_of(connection: Connection[Any], sql: bytes, values: list[Any]) -> Rows:
    return _fetched(RawCursor(connection, row_factory=tuple_row).execute(sql, values))


async def arows_of(connection: AsyncConnection[Any], sql: bytes, values: list[Any]) -> Rows:
    return await _afetched(
        await AsyncRawCursor(connection, row_factory=tuple_row).execute(sql, values)
    )


def _fetched(cursor: RawCursor[tuple[Any, ...]]) -> Rows:
    """In a pipeline this is what waits for the result."""
    with cursor:
        try:
            return cursor.fetchall()
        except psycopg.ProgrammingError as error:
            return _no_rows(error)


async def _afetched(cursor: AsyncRawCursor[tuple[Any, ...]]) -> Rows:
    async with cursor:
        try:
            return await cursor.fetchall()
        except psycopg.ProgrammingError as error:
            return _no_rows(error)


def _no_rows(error: psycopg.ProgrammingError) -> Rows:
    """psycopg's error for a statement without rows has no SQLSTATE, unlike the server's errors."""
    if error.sqlstate is not None:
        raise error
    return []
