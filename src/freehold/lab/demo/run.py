"""Runs a manager and the demo's scenario, until the scenario ends or a signal stops it."""

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

#: Gets the result of the check, and the event that a signal sets.
After: TypeAlias = Callable[[Check, asyncio.Event], Awaitable[None]]


async def run_demo(
    manager: Manager, scenario: DemoScenario, processes: WorkerProcesses, after: After
) -> Check | None:
    """Returns the result of the check, or None after a signal. All worker processes have ended."""
    stopped = asyncio.Event()
    manager_task = asyncio.create_task(manager.run(), name="manager")
    running = asyncio.create_task(scenario.run(), name="scenario")

    def stop() -> None:
        """The first signal drains the workers, the second stops their jobs at once."""
        running.cancel()
        if stopped.is_set():
            manager.stop()
        stopped.set()

    with _signals(stop):
        try:
            await _until_done(running, manager_task)
            if running.cancelled():
                return None
            found = running.result()
            await _until_done(asyncio.ensure_future(after(found, stopped)), manager_task)
            return found
        finally:
            running.cancel()
            manager.stop()
            await asyncio.gather(manager_task, running, return_exceptions=True)
            processes.kill_remaining()


async def _until_done(task: asyncio.Future[Any], manager_task: asyncio.Task[int]) -> None:
    """Waits for the task. A manager that ends before it raises its error here."""
    await asyncio.wait({task, manager_task}, return_when=asyncio.FIRST_COMPLETED)
    if manager_task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        manager_task.result()
    elif not task.cancelled():
        task.result()


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
