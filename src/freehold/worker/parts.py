"""The life cycle of the parts of a worker or a host: start, stop, crashed.

A part that is one coroutine is a task of a `PartGroup`: it is stopped by a cancellation, and an
exception is its crash. A part with a thread of its own has the methods of `Part`. No process goes
on without one of its parts: a crash is logged and ends the worker or the host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from freehold.telemetry import log


class Part(Protocol):
    """A part that runs outside the loop of its group."""

    def start(self) -> None: ...

    async def crashed(self) -> None:
        """Waits until the part crashes, and raises its error."""

    async def stop(self) -> None:
        """Returns when it has ended."""


class PartGroup:
    """The parts of one worker or host. ``on_crash`` is called when one of them has crashed."""

    def __init__(self, on_crash: Callable[[], None]) -> None:
        self.has_crashed = False
        self._on_crash = on_crash
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def start_part(self, name: str, part: Part) -> None:
        """`stop` does not stop this part: others may need it until they have ended."""
        part.start()
        self.start(name, part.crashed())

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the %s crashed: %r", task.get_name(), error, exc_info=error)
            self.has_crashed = True
            self._on_crash()

    async def stop(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
