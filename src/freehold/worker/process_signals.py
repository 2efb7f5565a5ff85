"""SIGTERM and SIGINT: the first drains, the second hurries. SIGUSR1: go, if idle."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_signals(
    drain: Callable[[], None], hurry: Callable[[], None], rest: Callable[[], None] | None = None
) -> Iterator[None]:
    """While inside. Only where signals can be handled."""
    loop = asyncio.get_running_loop()
    is_first = True

    def on_signal() -> None:
        nonlocal is_first
        (drain if is_first else hurry)()
        is_first = False

    installed: list[signal.Signals] = []
    wanted = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if rest is not None:
        wanted[signal.SIGUSR1] = rest
    for number, handler in wanted.items():
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handler)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
