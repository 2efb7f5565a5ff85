"""Plain functions on virtual time: they run at once in the thread of the loop, and block it.

A worker runs handlers that are plain functions in threads. A thread cannot be put on virtual
time, and the order of threads differs from run to run. So here each function runs to its end when
it is started. It sees no running event loop, as in a thread, and it sees the state of the test's
own thread (mocks, an open database transaction). Two limits remain: such a handler cannot be
stopped while it runs, and `time.sleep` takes real time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from freehold.worker.execution.thread_pool import ThreadPool, deliver


class InlineThreads(ThreadPool):
    """A thread pool without threads."""

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
    """Hides the running event loop of this thread, so that another one can run."""
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
