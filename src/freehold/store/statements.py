"""Verbs and sessions: what a store does, apart from how a database executes it.

A verb is a generator. It yields a *statement group*, which is executed in one transaction, and
receives the rows of each statement; its return value is the verb's result. So each rule of the
protocol is written once, and runs on a blocking connection, on an asyncio one, inside a caller's
own transaction, or in a simulation that loses the result on purpose.

    verb  --yields-->  StatementGroup  --Session.execute-->  rows  --sent back-->  verb

No lock is held between two groups: a verb that reads first writes with a guard on what it read,
and reads again if the guard did not hold.

A store has its verbs as methods, written down once: blocking in one class, coroutines in another.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

import msgspec

from freehold.errors import RowRefused, StoreError, StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")

_TRIES = 20
#: The unique indexes that can refuse a group: see `Conflict`.
LANE_INDEX = "job_lane_holder"
UNIQUE_INDEX = "job_unique"
BULK_STEP_INDEX = "bulk_step_once"

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
    """Statements of one transaction. ``writes``: not all of them only read.

    ``notification`` is sent after they are written, in a transaction of its own, and its failure is
    ignored. In a caller's transaction it is part of that.
    ``is_trial``: the transaction is rolled back, so that only its errors and rows remain.
    """

    statements: tuple[Statement, ...]
    writes: bool
    notification: Statement | None = None
    is_trial: bool = False


Verb: TypeAlias = Generator[StatementGroup, list[Rows], T]


class Conflict(RowRefused):
    """A unique index refused a group, and nothing of it was written. Verbs handle it. One that this
    version does not know, of a newer schema, is a row that the database refuses."""

    def __init__(self, index: str) -> None:
        super().__init__(f"the database refused: another row has its value in {index}")
        self.index = index


class Session(Protocol):
    """Executes groups, each in one transaction, or in one savepoint of the caller's."""

    def execute(self, group: StatementGroup) -> list[Rows]: ...


class AsyncSession(Protocol):
    """The same for asyncio."""

    async def execute(self, group: StatementGroup) -> list[Rows]: ...


def read(name: str, rows: Sequence[Mapping[str, Any]] | None = None, **params: Any) -> Verb[Rows]:
    """One statement that only reads."""
    answers = yield StatementGroup((Statement(name, params, rows),), writes=False)
    return answers[0]


def write(name: str, rows: Sequence[Mapping[str, Any]] | None = None, **params: Any) -> Verb[Rows]:
    """One statement that writes, as a transaction of its own."""
    answers = yield StatementGroup((Statement(name, params, rows),), writes=True)
    return answers[0]


def together(*statements: Statement, notification: Statement | None = None) -> Verb[list[Rows]]:
    """Several statements that write, as one transaction."""
    answers = yield StatementGroup(statements, writes=True, notification=notification)
    return answers


def trial(*statements: Statement) -> Verb[list[Rows]]:
    """Would these statements succeed? Nothing of them is kept. Never in a caller's transaction."""
    answers = yield StatementGroup(statements, writes=True, is_trial=True)
    return answers


def together_retrying_lanes(*statements: Statement) -> Verb[list[Rows]]:
    """Like together, repeated where a lane got another holder meanwhile: the next try sees it. A
    conflict on a unique key is raised."""
    conflict = Conflict("")
    for _ in range(_TRIES):
        try:
            return (yield from together(*statements))
        except Conflict as refused:
            if refused.index != LANE_INDEX:
                raise
            conflict = refused
    raise StoreUnavailable("the holder of a lane kept changing: try again") from conflict


def side_by_side(verbs: Sequence[Verb[T]]) -> Verb[list[T]]:
    """Several verbs that only read, in as many round trips as the longest of them takes. Each
    statement is executed once, however many of the verbs ask for it."""
    results: dict[int, T] = {}
    asked: dict[int, StatementGroup] = {}
    known: dict[str, Rows] = {}

    def advance(number: int, answers: list[Rows] | None) -> None:
        try:
            verb = verbs[number]
            asked[number] = next(verb) if answers is None else verb.send(answers)
        except StopIteration as end:
            asked.pop(number, None)
            results[number] = end.value

    for number in range(len(verbs)):
        advance(number, None)
    while asked:
        assert not any(group.writes for group in asked.values())
        new = {str(each): each for group in asked.values() for each in group.statements}
        new = {text: each for text, each in new.items() if text not in known}
        answers = (yield StatementGroup(tuple(new.values()), writes=False)) if new else []
        known.update(zip(new, answers, strict=True))
        for number, group in list(asked.items()):
            advance(number, [known[str(each)] for each in group.statements])
    return [results[number] for number in range(len(verbs))]


def nothing() -> Verb[None]:
    """A verb without statements."""
    yield from ()


def run(steps: Verb[T], session: Session) -> T:
    """Drive a verb on a blocking session."""
    try:
        group = next(steps)
        while True:
            try:
                answers = session.execute(group)
            except StoreError as error:  # a Conflict is one
                group = steps.throw(error)
            else:
                group = steps.send(answers)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def arun(steps: Verb[T], session: AsyncSession) -> T:
    """Drive a verb on an asyncio session."""
    try:
        group = next(steps)
        while True:
            try:
                answers = await session.execute(group)
            except StoreError as error:  # a Conflict is one
                group = steps.throw(error)
            else:
                group = steps.send(answers)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


# -- verbs as methods -----------------------------------------------------------------------------


class BlockingMethods:
    """Runs verbs on a blocking session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: Verb[T]) -> T:
        return run(steps, self.session)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, T]:
        session = self.session

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return run(verb(*args, **kwargs), session)

        return call


class AsyncMethods:
    """Runs verbs on a session of asyncio."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def run(self, steps: Verb[T]) -> T:
        return await arun(steps, self.session)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        session = self.session

        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return arun(verb(*args, **kwargs), session)

        return call


class method(Generic[P, T]):  # noqa: N801 - used like `property`
    """One verb in the list of a class that inherits one of the above."""

    def __init__(self, verb: Callable[P, Verb[T]]) -> None:
        self._verb = verb

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: BlockingMethods, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, instance: AsyncMethods, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(
        self, instance: None, owner: type[BlockingMethods]
    ) -> Callable[Concatenate[Any, P], T]: ...

    @overload
    def __get__(
        self, instance: None, owner: type[AsyncMethods]
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        """Made at the first use and kept in the instance, where Python looks first afterwards."""
        if instance is None:
            return self._of_class
        made = instance.__dict__[self._name] = instance._as_method(self._verb)
        return made

    def _of_class(self, instance: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(instance, self._name)(*args, **kwargs)
