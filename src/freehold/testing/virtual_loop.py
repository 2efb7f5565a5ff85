"""An event loop on virtual time: instead of waiting, it moves the clock to its next timer.

The loop's time and the store's are one: both read the same VirtualClock. What lies outside of
the loop cannot be hurried: while a thread works (run_in_executor) or a socket is open, waiting
is real, and the clock moves by what was waited. Everything else is the same in every run.
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
    """The loop waits, and nothing can ever end the wait."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """`asyncio.Runner(loop_factory=lambda: VirtualLoop(clock))` runs anything on it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._origin = clock.micros
        self._threads = 0
        self._files = _Jumping(self)
        super().__init__(self._files)
        # Timers less than a microsecond apart are due together, as on the clock.
        self._clock_resolution = 1 / _MICROS
        # The loop's own pipe, by which other threads wake it.
        self._own_files = len(self._files.get_map())

    def time(self) -> float:
        return (self.clock.micros - self._origin) / _MICROS

    def let_pass(self, seconds: float) -> None:
        """At least a microsecond, or the timer that is waited for would never be due."""
        self.clock.micros += max(1, math.ceil(seconds * _MICROS - 0.001))

    @property
    def waits_for_outside(self) -> bool:
        return self._threads > 0 or len(self._files.get_map()) > self._own_files

    def nothing_left(self) -> NothingLeft:
        waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
        return NothingLeft(
            "the event loop waits for something that can never happen: no timer, no thread and "
            f"no socket is left. Waiting: {', '.join(waiting) or 'nobody'}"
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
        """Its threads are waited for by one more thread."""
        self._threads += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._threads -= 1

    def add_signal_handler(
        self, sig: int, callback: Callable[[Unpack[Ts]], object], *args: *Ts
    ) -> NoReturn:
        raise NotImplementedError("signals belong to the program that runs the virtual loop")


class _Jumping(selectors.PollSelector):
    """Looks at files without waiting, and lets virtual time pass instead."""

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
            self._loop.let_pass(timeout)
        return found
