"""A handler's transaction over a link, which the server rolls back when its machine dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from freehold.errors import OutcomeUnknown, StoreUnavailable
from freehold.store.database import AsyncTransaction
from freehold.store.statements import AsyncSession, Rows, StatementGroup

#: Batches with their results.
Executed: TypeAlias = list[tuple[StatementGroup, list[Rows]]]


class LinkTransaction:
    """``on_closed`` gets the batches that were committed; ``commit_fails`` decides whether the
    result of a commit is lost."""

    def __init__(
        self,
        inner: AsyncTransaction,
        on_closed: Callable[[LinkTransaction, Executed], None],
        commit_fails: Callable[[], bool],
    ) -> None:
        self._inner = inner
        self._on_closed = on_closed
        self._commit_fails = commit_fails
        self._is_aborted = False
        self._is_begun = False
        self._executed: Executed = []

    async def begin(self) -> Any:
        connection = await self._inner.begin()
        if self._is_aborted:  # while it waited for the write lock
            await self._inner.rollback()
            raise _aborted()
        self._is_begun = True
        return connection

    @property
    def session(self) -> AsyncSession:
        if self._is_aborted:
            raise _aborted()
        return _RecordingSession(self._inner.session, self._executed)

    async def commit(self) -> None:
        if self._is_aborted:
            raise _aborted()
        await self._inner.commit()
        self._on_closed(self, self._executed)
        if self._commit_fails():
            raise OutcomeUnknown("simulated: the result of the commit was lost")

    async def rollback(self) -> None:
        if not self._is_aborted:
            await self._inner.rollback()
            self._on_closed(self, [])

    async def abort(self) -> None:
        self._is_aborted = True
        if self._is_begun:
            await self._inner.rollback()
        self._on_closed(self, [])


class _RecordingSession:
    def __init__(self, inner: AsyncSession, executed: Executed) -> None:
        self._inner = inner
        self._executed = executed

    async def execute(self, group: StatementGroup) -> list[Rows]:
        results = await self._inner.execute(group)
        self._executed.append((group, results))
        return results


def _aborted() -> StoreUnavailable:
    return StoreUnavailable("simulated: the transaction was aborted")
