"""Kills child processes in the middle of their work, each a little later than the one before."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable


def kill_in_the_middle(
    work: Callable[[int], object], took_seconds: float, *, children: int, least: int
) -> list[bool]:
    """Fork a child for `work(0)`, `work(1)`, …; returns which of them were killed in time.

    The kills are spread from before the work begins until after it ends. If the machine was busy
    while `took_seconds` was measured, many children end before their kill. So a child that ends
    before its kill shortens the estimate, and more children are forked until the least number was
    killed.
    """
    killed: list[bool] = []
    while len(killed) < children or sum(killed) < least:
        seconds = 1.5 * took_seconds * (len(killed) % children) / children
        killed.append(_is_killed_after(seconds, work, len(killed)))
        if not killed[-1]:
            took_seconds = min(took_seconds, seconds)
    return killed


def _is_killed_after(seconds: float, work: Callable[[int], object], number: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(number)
            code = 0
        finally:
            os._exit(code)
    time.sleep(seconds)  # until the kill, not a wait for an event
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed: {status}"
    return os.WIFSIGNALED(status)
