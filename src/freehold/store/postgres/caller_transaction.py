"""Sessions inside a transaction of the caller: nothing is committed here."""

from __future__ import annotations

from collections.abc import Callable, Generator

from freehold.store.postgres.caller_drivers import AsyncCallerConnection, CallerConnection
from freehold.store.postgres.errors import caller_error
from freehold.store.postgres.pipeline import SqlAndValues
from freehold.store.postgres.session import Statements, all_statements
from freehold.store.statements import Conflict, Rows, StatementGroup

_SAVEPOINT: SqlAndValues = (b"savepoint freehold", [])
_ROLLBACK: SqlAndValues = (b"rollback to savepoint freehold", [])
_RELEASE: SqlAndValues = (b"release savepoint freehold", [])


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
                else:
                    next_statement = exchange.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _exchange(
    group: StatementGroup, statements: Statements, is_in_transaction: Callable[[], bool]
) -> Generator[SqlAndValues, Rows, list[Rows]]:
    """Yields statements, and is sent their rows."""
    results = []
    for statement in all_statements(group):
        prepared = statements.prepare(statement)
        # A savepoint keeps the caller's transaction alive.
        needs_savepoint = statement.name in statements.can_conflict and is_in_transaction()
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
