"""Workers inside the test's own event loop, where their counters can be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker
from tests.worker.fleet import PATIENCE_SECONDS, Fleet

T = TypeVar("T")


@asynccontextmanager
async def working(fleet: Fleet, **settings: Any) -> AsyncIterator[Worker]:
    """A worker for the length of a block; it drains at the end, and must do so in order."""
    chosen = WorkerSettings(**{"lease_seconds": 2.0, "grace_seconds": 0.0, **settings})
    worker = Worker(fleet.app.database, fleet.app.tasks, chosen)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)  # until it runs, and can be drained
    try:
        yield worker
    finally:
        worker.drain()
        assert await running == 0


def run(fleet: Fleet, main: Coroutine[Any, Any, T]) -> T:
    """The connections of an event loop end with it."""

    async def closing() -> T:
        try:
            return await main
        finally:
            await fleet.app.database.aclose()

    return asyncio.run(closing())


async def until(condition: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Asks until the answer is true; others run meanwhile."""
    async with asyncio.timeout(seconds):
        while not (answer := condition()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return answer
