"""Threads for handlers that are plain functions.

The standard library's executor waits for its threads when the process ends: one handler that
ignores its stop would keep the process alive for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

Work: TypeAlias = tuple[Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any]]


class ThreadPool:
    """Grows with demand. An idle thread takes the next call."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._idle = 0
        self._total = 0
        self._lock = threading.Lock()

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """A future of the function's result in the running loop. Canceling it stops no thread. The
        function must not raise StopIteration, which a future refuses."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._total += 1
                name = f"freehold-handler-{self._total}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            context = contextvars.copy_context()
            self._waiting.put((functools.partial(context.run, function), loop, future))
        return future

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            function, loop, future = work
            try:
                result, error = function(), None
            except BaseException as raised:
                result, error = None, raised
            with self._lock:
                self._idle += 1
            deliver(loop, future, result, error)

    def close(self) -> None:
        """Idle threads end; busy ones end with the process."""
        for _ in range(self._total):
            self._waiting.put(None)


def deliver(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    result: Any,
    error: BaseException | None,
) -> None:
    def set_outcome() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        loop.call_soon_threadsafe(set_outcome)
    except RuntimeError:  # the loop has ended, and with it every waiter
        return
