"""The event loop of a worker: uvloop where it is installed. It ends even if a handler hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")

#: Coroutines that were canceled and have not ended after this long are left behind.
END_SECONDS = 1.0
_PREFIX = "freehold-to-thread"


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, on uvloop if it is installed.

    asyncio.run would wait for ever for a coroutine that ignores its cancellation. This function
    leaves the loop unclosed instead, so that the process can end.
    """
    runner = asyncio.Runner(loop_factory=_factory())
    runner.get_loop().set_default_executor(_Executor(thread_name_prefix=_PREFIX))
    try:
        return runner.run(main)
    finally:
        if runner.get_loop().run_until_complete(_cancel_others()):
            runner.close()


class _Executor(ThreadPoolExecutor):
    """For `asyncio.to_thread`. Does not wait for its threads: one may never end."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def threads_left() -> list[str]:
    """Threads of `asyncio.to_thread` that outlived their loop. They would keep the process alive
    for ever."""
    ours = [each for each in threading.enumerate() if each.name.startswith(_PREFIX)]
    for thread in ours:
        thread.join(END_SECONDS / len(ours))
    return [thread.name for thread in ours if thread.is_alive()]


async def uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Runs to the end and is canceled afterwards: a commit, for example, must not be
    interrupted half-way."""
    task = asyncio.ensure_future(work)
    stopped: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            stopped = error
    task.result()
    if stopped is not None:
        raise stopped


async def _cancel_others() -> bool:
    """Cancels all other tasks. Returns whether they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=END_SECONDS)
    return all(task.done() for task in others)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
