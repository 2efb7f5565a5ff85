"""How a verb talks to a database without knowing which, nor whether anybody awaits it.

A verb is a generator. It yields a *batch* of statements, which are executed together in one
transaction, and is sent the rows of each; when it returns, that is the verb's answer. So each
rule of the protocol is written once, and runs on a blocking connection, on an asyncio one,
inside a caller's own transaction, or in a simulation that loses the answer on purpose.

    verb  --yields-->  Batch of Statements  --Session.execute-->  rows  --sent back-->  verb

No lock is ever held between two batches: a verb that reads first writes with a guard that
says what it read, and looks again if the guard did not hold.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from freehold.errors import StoreError, StoreUnavailable

T = TypeVar("T")

_TRIES = 20
LANE_INDEX = "job_holder"

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]


class Statement(msgspec.Struct, frozen=True):
    """One named SQL file of the dialect, with its parameters.

    ``rows``, where given, is a set that the statement works on as a whole.
    """

    name: str
    params: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] | None = None


class StatementGroup(msgspec.Struct, frozen=True):
    """Statements of one transaction.

    ``then``: a hint that is sent when they are written, and not before. Whether it was is of no
    interest to anybody.
    """

    statements: tuple[Statement, ...]
    writes: bool
    then: Statement | None = None


Verb: TypeAlias = Generator[StatementGroup, list[Rows], T]


class Conflict(Exception):
    """A unique index refused a batch, and nothing of it was written. Verbs handle it."""

    def __init__(self, index: str) -> None:
        super().__init__(index)
        self.index = index


class Session(Protocol):
    """Executes batches; each batch is one transaction, or one savepoint of the caller's."""

    def execute(self, batch: StatementGroup) -> list[Rows]: ...


class AsyncSession(Protocol):
    """The same for asyncio."""

    async def execute(self, batch: StatementGroup) -> list[Rows]: ...


def read(name: str, rows: Sequence[Mapping[str, Any]] | None = None, **params: Any) -> Verb[Rows]:
    """One statement that only reads."""
    answers = yield StatementGroup((Statement(name, params, rows),), writes=False)
    return answers[0]


def write(name: str, rows: Sequence[Mapping[str, Any]] | None = None, **params: Any) -> Verb[Rows]:
    """One statement that writes, as a transaction of its own."""
    answers = yield StatementGroup((Statement(name, params, rows),), writes=True)
    return answers[0]


def together(*statements: Statement, then: Statement | None = None) -> Verb[list[Rows]]:
    """Several statements that write, as one transaction."""
    answers = yield StatementGroup(statements, writes=True, then=then)
    return answers


def insistently(*statements: Statement) -> Verb[list[Rows]]:
    """Like together, and again where a key or lane changed hands meanwhile: the next try sees to
    whom. A unique key that stays taken is the caller's to explain."""
    conflict = Conflict("")
    for _ in range(_TRIES):
        try:
            return (yield from together(*statements))
        except Conflict as refused:
            if refused.index != LANE_INDEX:
                raise
            conflict = refused
    raise StoreUnavailable("a lane kept changing hands: try again") from conflict


def nothing() -> Verb[None]:
    """A verb that asks nothing."""
    yield from ()


def run(steps: Verb[T], session: Session) -> T:
    """Drive a verb on a blocking session."""
    try:
        batch = next(steps)
        while True:
            try:
                answers = session.execute(batch)
            except (Conflict, StoreError) as error:
                batch = steps.throw(error)
            else:
                batch = steps.send(answers)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def arun(steps: Verb[T], session: AsyncSession) -> T:
    """Drive a verb on an asyncio session."""
    try:
        batch = next(steps)
        while True:
            try:
                answers = await session.execute(batch)
            except (Conflict, StoreError) as error:
                batch = steps.throw(error)
            else:
                batch = steps.send(answers)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
