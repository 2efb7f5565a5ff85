"""Batches on PostgreSQL: blocking, for asyncio, and inside a transaction that is ours to finish.

Each batch is one transaction and, as a pipeline, one round trip. Nothing is ever left in a
session: no settings, no advisory locks that outlive a transaction, no search path.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.rows import tuple_row

from freehold.store.postgres.errors import Forgotten, raise_as, translated
from freehold.store.postgres.pipeline import Exchange, Pipeline, PreparedStatement
from freehold.store.postgres.pool import AsyncPool, Pool
from freehold.store.sqlfiles import load_statements, numbered
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.statements import Rows, Statement, StatementGroup

#: What was forgotten was not done, and from then on nothing is prepared; but a connection may have
#: been made just before.
_TRIES = 3

#: New rows lock nobody out: the server works on some while the next are made ready.
_ADDING = "enqueue"


class Statements:
    """The SQL of one schema, ready to be sent; filled in when it is first asked for, because a
    process can serve hundreds of schemas."""

    def __init__(self, schema: str, schema_key: str, control: str | None = None) -> None:
        """``control``: the schema whose tenant this one is; its own, if nobody's."""
        self._names = {
            "@schema@": schema,
            "@schema_key@": schema_key,
            "@control@": control or schema,
        }
        self._texts: dict[str, tuple[bytes, tuple[str, ...]]] = {}

    def prepare(self, statement: Statement) -> tuple[bytes, list[Any]]:
        """SQL with numbered parameters, and their values; a set travels as one JSON text."""
        text, names = self._texts.get(statement.name) or self._text(statement.name)
        return text, _values(statement, names)

    def said(self, statement: Statement) -> PreparedStatement:
        """The same, with values that are made when it is their turn."""
        text, names = self._texts.get(statement.name) or self._text(statement.name)
        return PreparedStatement(text, partial(_values, statement, names))

    def _text(self, name: str) -> tuple[bytes, tuple[str, ...]]:
        text, names = _of_any_schema()[name]
        for mark, filled in self._names.items():
            text = text.replace(mark, filled)
        return self._texts.setdefault(name, (text.encode(), names))


def _values(statement: Statement, names: tuple[str, ...]) -> list[Any]:
    if statement.rows is None:
        return list(map(statement.params.__getitem__, names))
    return [
        msgspec.json.encode(statement.rows).decode() if name == "rows" else statement.params[name]
        for name in names
    ]


@cache
def _of_any_schema() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Numbered, with the marks of the schema still in them: read once for all schemas."""
    marks = {"schema": "@schema@", "schema_key": "@schema_key@", "control": "@control@"}
    texts = load_statements("freehold.store.postgres", marks | STAGE_SQL)
    return {name: numbered(text) for name, text in texts.items()}


class PostgresSession:
    """Blocking; takes a connection from the pool for each batch."""

    def __init__(self, pool: Pool, statements: Statements) -> None:
        self._pool = pool
        self._statements = statements

    def execute(self, batch: StatementGroup) -> list[Rows]:
        pool, tries = self._pool, _TRIES
        while True:
            connection = pool.take()
            try:
                answers = connection.wait(_exchange(connection.wire, batch, self._statements))
            except BaseException as error:
                ours = pool.give_back_after(error, connection, writes=batch.writes)
                tries -= 1
                if not (isinstance(ours, Forgotten) and tries):
                    raise_as(ours, error)
            else:
                pool.give_back(connection)
                return answers


class AsyncPostgresSession:
    """The same for asyncio, on the pool of whichever loop executes it."""

    def __init__(self, pool_of_loop: Callable[[], AsyncPool], statements: Statements) -> None:
        self._pool_of_loop = pool_of_loop
        self._statements = statements

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        pool, tries = self._pool_of_loop(), _TRIES
        while True:
            connection = await pool.take()
            try:
                answers = await connection.ask(_exchange(connection.wire, batch, self._statements))
            except BaseException as error:
                ours = pool.give_back_after(error, connection, writes=batch.writes)
                tries -= 1
                if not (isinstance(ours, Forgotten) and tries):
                    raise_as(ours, error)
            else:
                pool.give_back(connection)
                return answers


def _exchange(wire: Pipeline, batch: StatementGroup, statements: Statements) -> Exchange:
    if len(batch.statements) == 1 and batch.then is None:
        return wire.say(*statements.prepare(batch.statements[0]))
    return wire.talk(
        [statements.said(each) for each in batch.statements],
        then=None if batch.then is None else statements.said(batch.then),
        flows=all(each.name.startswith(_ADDING) for each in batch.statements),
    )


class PostgresSavepointSession:
    """Inside a transaction that is ours to finish: each batch is a savepoint of it.

    Until the commit a broken connection means that nothing was written, and is told as such.
    """

    def __init__(self, connection: Connection[Any], statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    def execute(self, batch: StatementGroup) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in spoken(batch)]
        with translated(writes=False), self._connection.transaction():
            answers = [rows_of(self._connection, *each) for each in prepared]
        return answers[: len(batch.statements)]


class AsyncPostgresSavepointSession:
    """The same for asyncio."""

    def __init__(self, connection: AsyncConnection[Any], statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        prepared = [self._statements.prepare(each) for each in spoken(batch)]
        with translated(writes=False):
            async with self._connection.transaction():
                answers = [await arows_of(self._connection, *each) for each in prepared]
        return answers[: len(batch.statements)]


def spoken(batch: StatementGroup) -> tuple[Statement, ...]:
    """Inside a larger transaction a hint is heard when that commits, so it can come at once."""
    return batch.statements if batch.then is None else (*batch.statements, batch.then)


def _send(connection: Connection[Any], sql: bytes, values: list[Any]) -> RawCursor[Any]:
    return RawCursor(connection, row_factory=tuple_row).execute(sql, values)


def rows_of(connection: Connection[Any], sql: bytes, values: list[Any]) -> Rows:
    with _send(connection, sql, values) as cursor:
        try:
            return cursor.fetchall()  # in a caller's pipeline this is what waits for the answer
        except psycopg.ProgrammingError as error:
            return _no_rows(error)


def _no_rows(error: psycopg.ProgrammingError) -> Rows:
    """psycopg's own words for a statement that has none; what the server says has a state."""
    if error.sqlstate is not None:
        raise error
    return []


async def _asend(
    connection: AsyncConnection[Any], sql: bytes, values: list[Any]
) -> AsyncRawCursor[Any]:
    return await AsyncRawCursor(connection, row_factory=tuple_row).execute(sql, values)


async def arows_of(connection: AsyncConnection[Any], sql: bytes, values: list[Any]) -> Rows:
    async with await _asend(connection, sql, values) as cursor:
        try:
            return await cursor.fetchall()
        except psycopg.ProgrammingError as error:
            return _no_rows(error)
