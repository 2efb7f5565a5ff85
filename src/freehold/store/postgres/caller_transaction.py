"""Sessions inside a transaction of the caller: nothing is committed here.

A connection in autocommit has none. There a group of several statements gets its own, as from a
session of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TypeAlias

from freehold.store.postgres.caller_drivers import AsyncCallerConnection, CallerConnection
from freehold.store.postgres.errors import caller_error
from freehold.store.postgres.pipeline import SqlAndValues
from freehold.store.postgres.session import Statements, all_statements
from freehold.store.statements import Conflict, Rows, StatementGroup

_SAVEPOINT: SqlAndValues = (b"savepoint freehold", [])
_ROLLBACK: SqlAndValues = (b"rollback to savepoint freehold", [])
_RELEASE: SqlAndValues = (b"release savepoint freehold", [])
_BEGIN: SqlAndValues = (b"begin", [])
_COMMIT: SqlAndValues = (b"commit", [])
_ABORT: SqlAndValues = (b"rollback", [])
#: Yields statements, and is sent their rows.
CallerExchange: TypeAlias = Generator[SqlAndValues, Rows, list[Rows]]


class CallerSession:
    """On a connection of any library: see `caller_drivers`."""

    def __init__(self, connection: CallerConnection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    def execute(self, group: StatementGroup) -> list[Rows]:
        exchange = _exchange(group, self._statements, self._connection.is_in_transaction)
        try:
            next_statement = next(exchange)
            while True:
                try:
                    rows = self._connection.rows(*next_statement)
                except Exception as error:
                    next_statement = exchange.throw(caller_error(error))
                except BaseException as error:  # the call is canceled
                    next_statement = exchange.throw(error)
                else:
                    next_statement = exchange.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class AsyncCallerSession:
    """The same for asyncio."""

    def __init__(self, connection: AsyncCallerConnection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    async def execute(self, group: StatementGroup) -> list[Rows]:
        await self._connection.open()
        exchange = _exchange(group, self._statements, self._connection.is_in_transaction)
        try:
            next_statement = next(exchange)
            while True:
                try:
                    rows = await self._connection.rows(*next_statement)
                except Exception as error:
                    next_statement = exchange.throw(caller_error(error))
                except BaseException as error:  # the call is canceled
                    next_statement = exchange.throw(error)
                else:
                    next_statement = exchange.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _exchange(
    group: StatementGroup, statements: Statements, is_in_transaction: Callable[[], bool]
) -> CallerExchange:
    has_transaction = is_in_transaction()
    exchange = _statements_of(group, statements, has_transaction)
    if has_transaction or len(group.statements) == 1:
        return exchange
    return _in_a_transaction(exchange)


def _statements_of(
    group: StatementGroup, statements: Statements, has_transaction: bool
) -> CallerExchange:
    results = []
    for statement in all_statements(group):
        prepared = statements.with_values(statement)
        # A savepoint keeps the caller's transaction alive.
        needs_savepoint = has_transaction and statement.name in statements.can_conflict
        if needs_savepoint:
            yield _SAVEPOINT
        try:
            results.append((yield prepared))
        except Conflict:
            if needs_savepoint:
                yield _ROLLBACK
            raise
        if needs_savepoint:
            yield _RELEASE
    return results[: len(group.statements)]


def _in_a_transaction(exchange: CallerExchange) -> CallerExchange:
    yield _BEGIN
    try:
        results = yield from exchange
    except GeneratorExit:
        raise
    except BaseException:
        with suppress(Exception):  # the first error is the cause
            yield _ABORT
        raise
    yield _COMMIT
    return results
