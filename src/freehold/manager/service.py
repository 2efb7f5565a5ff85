"""`freehold up`: a manager, and the parts that run beside it, as one service."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any

from freehold.exit_codes import EXIT_CRASHED
from freehold.manager.manager_group import RunsWorkers
from freehold.telemetry import log


async def serve(manager: RunsWorkers, beside: Mapping[str, Coroutine[Any, Any, None]]) -> int:
    """Run until a signal, and until all workers have drained. Then cancel the parts beside it.

    A part that ends by itself has crashed: the service logs it and stops by drain.
    """
    managing = asyncio.create_task(manager.run(), name="manager")
    parts = [asyncio.create_task(part, name=name) for name, part in beside.items()]
    try:
        with _signals(manager):
            await asyncio.wait({managing, *parts}, return_when=asyncio.FIRST_COMPLETED)
            crashed = [part for part in parts if part.done()]
            for part in crashed:
                log.error("the %s ended: %r", part.get_name(), part.exception())
                manager.stop()
            code = await managing
        return EXIT_CRASHED if crashed else code
    finally:
        managing.cancel()
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, managing, return_exceptions=True)


@contextlib.contextmanager
def _signals(manager: RunsWorkers) -> Iterator[None]:
    """The first signal drains the workers, the second stops their running jobs."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, manager.stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
