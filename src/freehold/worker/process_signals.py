"""The first SIGTERM or SIGINT drains, the second stops at once; SIGUSR1 drains an idle process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from functools import partial


@contextlib.contextmanager
def stop_signals(
    drain: Callable[[], None],
    stop_now: Callable[[], None],
    drain_if_idle: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Within the block. Does nothing in another than the main thread, where no signal arrives."""
    is_first = True

    def on_signal() -> None:
        nonlocal is_first
        (drain if is_first else stop_now)()
        is_first = False

    wanted = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if drain_if_idle is not None:
        wanted[signal.SIGUSR1] = drain_if_idle
    with contextlib.ExitStack() as installed:
        for number, handler in wanted.items():
            with contextlib.suppress(RuntimeError, ValueError):  # not the main thread
                installed.callback(_install(number, handler))
        yield


def _install(number: signal.Signals, handler: Callable[[], None]) -> Callable[[], object]:
    """Returns the function that removes it. Without a handler, Python would raise KeyboardInterrupt
    in whatever code runs, which can be that of a handler or the examination of its outcome: it
    would end the attempt, and not the worker."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, handler)
    except NotImplementedError:  # by this event loop
        before = signal.signal(number, lambda *_: loop.call_soon_threadsafe(handler))
        return partial(signal.signal, number, before)
    return partial(loop.remove_signal_handler, number)
