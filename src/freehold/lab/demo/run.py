"""A manager and the demo's director beside it, until the story is over or somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

from freehold.lab.demo.check import Check
from freehold.lab.demo.scenario import DemoScenario
from freehold.lab.demo.worker_processes import WorkerProcesses
from freehold.manager.manager import Manager

#: Is told what was found, and gets the event that a signal sets.
After: TypeAlias = Callable[[Check, asyncio.Event], Awaitable[None]]


async def run_demo(
    manager: Manager, director: DemoScenario, staff: WorkerProcesses, after: After
) -> Check | None:
    """What was found; None if it was stopped before. No process of ours outlives this."""
    stopped = asyncio.Event()
    managing = asyncio.create_task(manager.run(), name="manager")
    directing = asyncio.create_task(director.run(), name="director")

    def stop() -> None:
        """The first signal drains the workers, the second hurries them."""
        directing.cancel()
        if stopped.is_set():
            manager.stop()
        stopped.set()

    with _signals(stop):
        try:
            await _ended(directing, managing)
            if directing.cancelled():
                return None
            found = directing.result()
            await _ended(asyncio.ensure_future(after(found, stopped)), managing)
            return found
        finally:
            directing.cancel()
            manager.stop()
            await asyncio.gather(managing, directing, return_exceptions=True)
            staff.leave_nobody()


async def _ended(work: asyncio.Future[Any], managing: asyncio.Task[int]) -> None:
    """Once the work is over; a manager that ends meanwhile says why it could not go on."""
    await asyncio.wait({work, managing}, return_when=asyncio.FIRST_COMPLETED)
    if managing.done():
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        managing.result()
    elif not work.cancelled():
        work.result()


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
