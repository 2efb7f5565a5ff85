"""Inside a transaction that the caller has open: nothing is committed here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from freehold.store.postgres.caller_drivers import AsyncCallerConnection, CallerConnection
from freehold.store.postgres.errors import caller_error
from freehold.store.postgres.session import Statements, spoken
from freehold.store.statements import Conflict, Rows, StatementGroup

#: The statement that can meet a unique index: a savepoint keeps that from costing the caller
#: everything else.
_CAN_CONFLICT = "enqueue_keyed"

SqlAndValues: TypeAlias = tuple[bytes, list[Any]]
_SAVE: SqlAndValues = (b"savepoint freehold", [])
_UNDO: SqlAndValues = (b"rollback to savepoint freehold", [])
_KEEP: SqlAndValues = (b"release savepoint freehold", [])


class CallerSession:
    """On whatever the caller has: see `desks`."""

    def __init__(self, desk: CallerConnection, statements: Statements) -> None:
        self._desk = desk
        self._statements = statements

    def execute(self, batch: StatementGroup) -> list[Rows]:
        talk = _exchange(batch, self._statements, self._desk.is_in_transaction)
        try:
            said = next(talk)
            while True:
                try:
                    rows = self._desk.rows(*said)
                except Exception as error:
                    said = talk.throw(caller_error(error))
                else:
                    said = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class AsyncCallerSession:
    """The same for asyncio."""

    def __init__(self, desk: AsyncCallerConnection, statements: Statements) -> None:
        self._desk = desk
        self._statements = statements

    async def execute(self, batch: StatementGroup) -> list[Rows]:
        await self._desk.open()
        talk = _exchange(batch, self._statements, self._desk.is_in_transaction)
        try:
            said = next(talk)
            while True:
                try:
                    rows = await self._desk.rows(*said)
                except Exception as error:
                    said = talk.throw(caller_error(error))
                else:
                    said = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _exchange(
    batch: StatementGroup, statements: Statements, is_in_transaction: Callable[[], bool]
) -> Generator[SqlAndValues, Rows, list[Rows]]:
    answers = []
    for statement in spoken(batch):
        said = statements.prepare(statement)
        guarded = statement.name == _CAN_CONFLICT and is_in_transaction()
        if guarded:
            yield _SAVE
        try:
            answers.append((yield said))
        except Conflict:
            if guarded:
                yield _UNDO
            raise
        if guarded:
            yield _KEEP
    return answers[: len(batch.statements)]
