"""Plain functions on virtual time: run at once, in the thread of the loop, which stands still.

Handlers that are plain functions run in threads of a worker. A thread cannot be put on virtual
time, and threads run in another order every time. So here each function runs to its end when it
is started. It sees no running event loop, as in a thread, and what the test's own thread has
(mocks, an open database transaction) is there. What this cannot show: such a handler being
stopped while it runs; `time.sleep` sleeps for real.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from freehold.worker.execution.thread_pool import ThreadPool, deliver


class InlineThreads(ThreadPool):
    """Has no threads."""

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with out_of_loop():
            try:
                result, error = function(), None
            except BaseException as raised:
                result, error = None, raised
        deliver(loop, future, result, error)
        return future


@contextlib.contextmanager
def out_of_loop() -> Iterator[None]:
    """As if no event loop were running in this thread: another one may."""
    loop = asyncio._get_running_loop()
    if loop is None:
        yield
        return
    task = asyncio.current_task(loop)
    if task is not None:
        asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            asyncio.tasks._enter_task(loop, task)
