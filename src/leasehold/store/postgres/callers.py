"""Inside a transaction that the caller has open: nothing is committed here."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from leasehold.store.postgres.desks import AsyncDesk, Desk
from leasehold.store.postgres.errors import told_to_caller
from leasehold.store.postgres.session import Statements, spoken
from leasehold.store.steps import Batch, Conflict, Rows

#: The statement that can meet a unique index: a savepoint keeps that from costing the caller
#: everything else.
_CAN_CONFLICT = "enqueue_keyed"

Said: TypeAlias = tuple[bytes, list[Any]]
_SAVE: Said = (b"savepoint leasehold", [])
_UNDO: Said = (b"rollback to savepoint leasehold", [])
_KEEP: Said = (b"release savepoint leasehold", [])


class CallerSession:
    """On whatever the caller has: see `desks`."""

    def __init__(self, desk: Desk, statements: Statements) -> None:
        self._desk = desk
        self._statements = statements

    def execute(self, batch: Batch) -> list[Rows]:
        talk = _talk(batch, self._statements, self._desk.is_in_transaction)
        try:
            said = next(talk)
            while True:
                try:
                    rows = self._desk.rows(*said)
                except Exception as error:
                    said = talk.throw(told_to_caller(error))
                else:
                    said = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class AsyncCallerSession:
    """The same for asyncio."""

    def __init__(self, desk: AsyncDesk, statements: Statements) -> None:
        self._desk = desk
        self._statements = statements

    async def execute(self, batch: Batch) -> list[Rows]:
        await self._desk.open()
        talk = _talk(batch, self._statements, self._desk.is_in_transaction)
        try:
            said = next(talk)
            while True:
                try:
                    rows = await self._desk.rows(*said)
                except Exception as error:
                    said = talk.throw(told_to_caller(error))
                else:
                    said = talk.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _talk(
    batch: Batch, statements: Statements, is_in_transaction: Callable[[], bool]
) -> Generator[Said, Rows, list[Rows]]:
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
