"""Several managers as one: that of the hosts, and one for each tenant with workers of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol


class RunsWorkers(Protocol):
    """A manager, or a group of them."""

    async def run(self) -> int: ...

    def stop(self) -> None: ...

    def drain(self) -> None: ...

    def replace_workers(self) -> None: ...


class ManagerGroup:
    """Runs until all have ended. One that ends by itself stops the others."""

    def __init__(self, managers: Sequence[RunsWorkers]) -> None:
        self._managers = managers

    async def run(self) -> int:
        running = [asyncio.create_task(each.run()) for each in self._managers]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for manager, task in zip(self._managers, running, strict=True):
                if not task.done():
                    manager.drain()
            await asyncio.wait(running)
            return max(task.result() for task in running)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def stop(self) -> None:
        for manager in self._managers:
            manager.stop()

    def drain(self) -> None:
        for manager in self._managers:
            manager.drain()

    def replace_workers(self) -> None:
        for manager in self._managers:
            manager.replace_workers()
