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
from typing import Any, NoReturn

from leasehold.clock import VirtualClock
from leasehold.errors import LeaseholdError

_MICROS = 1_000_000


class NothingLeft(LeaseholdError):
    """The loop waits, and nothing can ever end the wait."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """`asyncio.Runner(loop_factory=lambda: VirtualLoop(clock))` runs anything on it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._origin = clock.micros
        self._outside = 0
        super().__init__(_Jumping(self._wait))
        # Timers less than a microsecond apart are due together, as on the clock.
        self._clock_resolution = 1 / _MICROS
        # The loop's own pipe, by which other threads wake it.
        self._own_files = len(self._files())

    def time(self) -> float:
        return (self.clock.micros - self._origin) / _MICROS

    def _files(self) -> Any:
        return self._selector.get_map()  # type: ignore[attr-defined]

    def _wait(self, timeout: float | None, really: Callable[[float | None], None]) -> None:
        """Nothing is ready: let the time pass that the loop would wait for."""
        if self._outside or len(self._files()) > self._own_files:
            really(timeout)
        if timeout is not None:
            self.clock.micros += max(1, math.ceil(timeout * _MICROS - 0.001))
        elif not self._outside and len(self._files()) == self._own_files:
            raise NothingLeft(
                "the event loop waits for something that can never happen: no timer, no thread "
                f"and no socket is left. Waiting: {self._waiting()}"
            )

    def _waiting(self) -> str:
        return ", ".join(sorted(task.get_name() for task in asyncio.all_tasks(self))) or "nobody"

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._outside += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _future: asyncio.Future[Any]) -> None:
        self._outside -= 1

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        """Its threads are waited for by another thread."""
        self._outside += 1
        try:
            await super().shutdown_default_executor(*args, **kwargs)
        finally:
            self._outside -= 1

    def add_signal_handler(self, *_: Any) -> NoReturn:
        raise NotImplementedError("signals belong to the program that runs the virtual loop")


class _Jumping(selectors.PollSelector):
    """Looks at files without waiting; asks the loop before it waits."""

    def __init__(
        self, wait: Callable[[float | None, Callable[[float | None], None]], None]
    ) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        late: list[tuple[selectors.SelectorKey, int]] = []

        def really(seconds: float | None) -> None:
            late.extend(super(_Jumping, self).select(seconds))

        self._wait(timeout, really)
        return late
