"""An event loop on virtual time: instead of waiting, it moves the clock to its next timer.

The loop and the store read the same VirtualClock. Threads and sockets are outside of the loop:
while a thread runs (run_in_executor) or a socket is open, waiting takes real time, and the clock
moves by the time waited. Everything else is the same in every run.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from freehold.clock import VirtualClock
from freehold.errors import FreeholdError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_MICROS = 1_000_000


class NothingLeft(FreeholdError):
    """The loop waits, and no timer, thread or socket can end the wait."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Used as `asyncio.Runner(loop_factory=lambda: VirtualLoop(clock))`."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._origin = clock.micros
        self._threads = 0
        self._files = _TimeSkippingSelector(self)
        super().__init__(self._files)
        # Timers less than a microsecond apart are due together, because the clock counts
        # microseconds.
        self._clock_resolution = 1 / _MICROS
        # The loop's own pipe, with which other threads wake it.
        self._own_files = len(self._files.get_map())

    def time(self) -> float:
        return (self.clock.micros - self._origin) / _MICROS

    def skip(self, seconds: float) -> None:
        """Advances by at least a microsecond, or the awaited timer would never be due."""
        self.clock.micros += max(1, math.ceil(seconds * _MICROS - 0.001))

    @property
    def waits_for_outside(self) -> bool:
        return self._threads > 0 or len(self._files.get_map()) > self._own_files

    def nothing_left(self) -> NothingLeft:
        waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
        return NothingLeft(
            "the event loop waits for something that can never happen: no timer, no thread and "
            f"no socket is left. Waiting tasks: {', '.join(waiting) or 'none'}"
        )

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: asyncio.Future[Any]) -> None:
        self._threads -= 1

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """asyncio waits for the executor's threads in one more thread."""
        self._threads += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._threads -= 1

    def add_signal_handler(
        self, sig: int, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> NoReturn:
        raise NotImplementedError("signals belong to the program that runs the virtual loop")


class _TimeSkippingSelector(selectors.PollSelector):
    """Polls files without waiting, and advances virtual time instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if self._loop.waits_for_outside:
            found = super().select(timeout)
        elif timeout is None:
            raise self._loop.nothing_left()
        if timeout is not None and not found:
            self._loop.skip(timeout)
        return found
