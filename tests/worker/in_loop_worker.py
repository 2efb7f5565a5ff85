"""Workers inside the test's own event loop, where their counters can be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker
from tests.worker.fleet import TIMEOUT_SECONDS, Fleet

T = TypeVar("T")


@asynccontextmanager
async def working(fleet: Fleet, **settings: Any) -> AsyncIterator[Worker]:
    """A worker for the length of a block. It drains at the end, and must exit with 0."""
    chosen = WorkerSettings(
        **{"lease_timeout_seconds": 2.0, "shutdown_grace_seconds": 0.0, **settings}
    )
    worker = Worker(fleet.app._database, fleet.app.tasks, chosen)
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
            await fleet.app._database.aclose()

    return asyncio.run(closing())


async def until(condition: Callable[[], T], seconds: float = TIMEOUT_SECONDS) -> T:
    """Polls until the condition is true; other tasks run meanwhile. Returns its value."""
    async with asyncio.timeout(seconds):
        while not (value := condition()):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        return value
