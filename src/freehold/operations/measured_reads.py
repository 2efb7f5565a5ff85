"""An operator whose reads are measured, for callers that limit what they read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from freehold.store.statements import AsyncSession, Rows, StatementGroup


class Meter(Protocol):
    """Runs each group of statements, when it is its turn."""

    async def measured(self, run: Callable[[], Awaitable[list[Rows]]]) -> list[Rows]: ...


class MeasuredSession:
    """A session of asyncio whose groups are run by a meter."""

    def __init__(self, session: AsyncSession, meter: Meter) -> None:
        self._session = session
        self._meter = meter

    async def execute(self, group: StatementGroup) -> list[Rows]:
        return await self._meter.measured(lambda: self._session.execute(group))
