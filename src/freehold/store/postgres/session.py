"""Statement groups on PostgreSQL: blocking, and for asyncio.

Each group is one transaction and, as a pipeline, one round trip. No state of a caller is
ever left in a session: no advisory locks that outlive a transaction, no search path.

The plain sessions, which stand first, use psycopg as its manual describes. The pipelined ones
replace one step of them: they send the group on libpq itself, which `pipeline` explains. Those are
the default; both pass the same tests.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.rows import tuple_row

from freehold.store.postgres.async_pool import AsyncPool, AsyncPooledConnection
from freehold.store.postgres.errors import StatementNotPrepared, raise_as
from freehold.store.postgres.pipeline import Exchange, Pipeline, SqlAndValues
from freehold.store.postgres.pool import Pool, PooledConnection, answering_within
from freehold.store.postgres.timeline import CHECK, check_sql, with_check, without_check
from freehold.store.sqlfiles import Property, load_statements, numbered, statements_with
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.statements import Rows, Statement, StatementGroup

_PACKAGE = "freehold.store.postgres"
#: A statement that was not prepared was not executed, and later connections prepare nothing. One
#: that was opened just before still may: hence more than two tries.
_TRIES = 3


class Statements:
    """The SQL of one schema, ready to be sent. Filled in at first use, because a process can serve
    hundreds of schemas."""

    def __init__(
        self,
        schema: str,
        schema_key: str,
        control: str | None = None,
        *,
        draws_checked: bool = False,
    ) -> None:
        """``control``: the control schema, if this is the schema of a tenant. ``draws_checked``:
        each number is drawn with a check of its own, as on connections that are not ours."""
        self.schema = schema
        self._names = {
            "@schema@": schema,
            "@schema_key@": schema_key,
            "@control@": control or schema,
        }
        if draws_checked:
            self._names["nextval("] = f"{schema}.next_number("
        self._texts: dict[str, tuple[bytes, tuple[str, ...]]] = {CHECK: (check_sql(schema), ())}
        self.adding_rows = _names_with(Property.ADDS_ROWS)
        self.can_conflict = _names_with(Property.CAN_CONFLICT)
        self.taking_long = _names_with(Property.TAKES_LONG)

    def with_values(self, statement: Statement) -> SqlAndValues:
        """SQL with numbered parameters, and their values; a set is sent as one JSON text."""
        text, names = self._texts.get(statement.name) or self._text(statement.name)
        if statement.rows is None:
            return text, list(map(statement.params.__getitem__, names))
        values = {**statement.params, "rows": msgspec.json.encode(statement.rows).decode()}
        if "calls" in values:  # each is JSON already: quoted as a text it would be parsed twice
            values["calls"] = f"[{','.join(values['calls'])}]"
        return text, list(map(values.__getitem__, names))

    def _text(self, name: str) -> tuple[bytes, tuple[str, ...]]:
        text, names = _templates()[name]
        for placeholder, filled in self._names.items():
            text = text.replace(placeholder, filled)
        return self._texts.setdefault(name, (text.encode(), names))


@cache
def _templates() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Numbered, with placeholders for the schema: read once for all schemas."""
    placeholders = {"schema": "@schema@", "schema_key": "@schema_key@", "control": "@control@"}
    texts = load_statements(_PACKAGE, placeholders | STAGE_SQL)
    return {name: numbered(text) for name, text in texts.items()}


@cache
def _names_with(wanted: Property) -> frozenset[str]:
    return statements_with(wanted, _PACKAGE)


class PostgresSession:
    """Blocking; acquires a connection from the pool for each group. Uses psycopg's cursors."""

    def __init__(self, pool: Pool, statements: Statements) -> None:
        self._pool = pool
        self._statements = statements

    def execute(self, group: StatementGroup) -> list[Rows]:
        pool, tries = self._pool, _TRIES
        while True:
            connection = pool.acquire()
            try:
                if group.writes and self._statements.schema not in connection.checked_schemas:
                    results = self._execute_checked(connection, group)
                else:
                    results = self._execute_on(connection, group)
            except BaseException as error:
                translation = pool.release_after(error, connection, writes=group.writes)
                tries -= 1
                if not (isinstance(translation, StatementNotPrepared) and tries):
                    raise_as(translation, error)
            else:
                pool.release(connection)
                return results

    def _execute_checked(self, connection: PooledConnection, group: StatementGroup) -> list[Rows]:
        results = self._execute_on(connection, with_check(group))
        return without_check(connection, self._statements.schema, results)

    def _execute_on(self, connection: PooledConnection, group: StatementGroup) -> list[Rows]:
        prepared = [self._statements.with_values(each) for each in group.statements]
        with answering_within(connection, _limit(connection, group, self._statements)):
            if len(prepared) == 1 and not group.is_trial:
                results = [rows_of(connection, *prepared[0])]
            else:
                with connection.pipeline(), connection.transaction(force_rollback=group.is_trial):
                    cursors = [
                        RawCursor(connection, row_factory=tuple_row).execute(*each)
                        for each in prepared
                    ]
                    results = [_fetched(cursor) for cursor in cursors]
            if group.notification is not None:
                with suppress(psycopg.Error):
                    rows_of(connection, *self._statements.with_values(group.notification))
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
                if group.writes and self._statements.schema not in connection.checked_schemas:
                    results = await self._execute_checked(connection, group)
                else:
                    results = await self._execute_on(connection, group)
            except BaseException as error:
                translation = pool.release_after(error, connection, writes=group.writes)
                tries -= 1
                if not (isinstance(translation, StatementNotPrepared) and tries):
                    raise_as(translation, error)
            else:
                pool.release(connection)
                return results

    async def _execute_checked(
        self, connection: AsyncPooledConnection, group: StatementGroup
    ) -> list[Rows]:
        results = await self._execute_on(connection, with_check(group))
        return without_check(connection, self._statements.schema, results)

    async def _execute_on(
        self, connection: AsyncPooledConnection, group: StatementGroup
    ) -> list[Rows]:
        prepared = [self._statements.with_values(each) for each in group.statements]
        with answering_within(connection, _limit(connection, group, self._statements)):
            if len(prepared) == 1 and not group.is_trial:
                results = [await arows_of(connection, *prepared[0])]
            else:
                transaction = connection.transaction(force_rollback=group.is_trial)
                async with connection.pipeline(), transaction:
                    cursors = [
                        await AsyncRawCursor(connection, row_factory=tuple_row).execute(*each)
                        for each in prepared
                    ]
                    results = [await _afetched(cursor) for cursor in cursors]
            if group.notification is not None:
                with suppress(psycopg.Error):
                    await arows_of(connection, *self._statements.with_values(group.notification))
        return results


class PipelinedSession(PostgresSession):
    """Blocking, on libpq."""

    def _execute_on(self, connection: PooledConnection, group: StatementGroup) -> list[Rows]:
        if group.is_trial:  # rare, and rolled back
            return super()._execute_on(connection, group)
        exchange = _exchange(connection.group_pipeline, group, self._statements)
        return connection.run_exchange(exchange, _limit(connection, group, self._statements))


class AsyncPipelinedSession(AsyncPostgresSession):
    """The same for asyncio."""

    async def _execute_on(
        self, connection: AsyncPooledConnection, group: StatementGroup
    ) -> list[Rows]:
        if group.is_trial:
            return await super()._execute_on(connection, group)
        exchange = _exchange(connection.group_pipeline, group, self._statements)
        return await connection.run_exchange(exchange, _limit(connection, group, self._statements))


def _exchange(pipeline: Pipeline, group: StatementGroup, statements: Statements) -> Exchange:
    then = group.notification
    if then is None and len(group.statements) == 1:
        return pipeline.exchange_one(*statements.with_values(group.statements[0]))
    return pipeline.exchange(
        map(statements.with_values, group.statements),
        then=None if then is None else statements.with_values(then),
        streams=len(group.statements) > 1
        and all(each.name in statements.adding_rows for each in group.statements),
    )


def _limit(
    connection: PooledConnection | AsyncPooledConnection,
    group: StatementGroup,
    statements: Statements,
) -> float | None:
    """Seconds until the server must have responded. A bulk enqueue is a group of many statements.
    One that takes long is alone in its group, except for a check of the timeline."""
    seconds = connection.answer_seconds
    if seconds is None or group.statements[-1].name in statements.taking_long:
        return None
    return seconds * len(group.statements)


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
