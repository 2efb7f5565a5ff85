"""Which event loop a worker runs on (uvloop where it is installed), and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")

#: Coroutines that were cancelled and have not ended after this long are left behind.
END_SECONDS = 1.0


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Like asyncio.run, on the faster loop if there is one.

    Where asyncio.run would wait for ever, for a coroutine that ignores its cancellation, this
    one leaves the loop behind unclosed, so that the process can end.
    """
    runner = asyncio.Runner(loop_factory=_factory())
    try:
        return runner.run(main)
    finally:
        if runner.get_loop().run_until_complete(_end_others()):
            runner.close()


async def _end_others() -> bool:
    """Cancel all other tasks; answers whether they have ended."""
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
