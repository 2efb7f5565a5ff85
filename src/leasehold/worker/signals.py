"""SIGTERM and SIGINT: the first drains, the second hurries."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_signals(drain: Callable[[], None], hurry: Callable[[], None]) -> Iterator[None]:
    """While inside. Only where signals can be handled."""
    loop = asyncio.get_running_loop()
    is_first = True

    def on_signal() -> None:
        nonlocal is_first
        (drain if is_first else hurry)()
        is_first = False

    installed: list[signal.Signals] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, on_signal)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
