"""The first SIGTERM or SIGINT drains, the second stops at once; SIGUSR1 drains an idle process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stop_signals(
    drain: Callable[[], None],
    stop_now: Callable[[], None],
    drain_if_idle: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Within the block. Does nothing where signals cannot be handled, as in other threads."""
    loop = asyncio.get_running_loop()
    is_first = True

    def on_signal() -> None:
        nonlocal is_first
        (drain if is_first else stop_now)()
        is_first = False

    installed: list[signal.Signals] = []
    wanted = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if drain_if_idle is not None:
        wanted[signal.SIGUSR1] = drain_if_idle
    for number, handler in wanted.items():
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handler)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
