"""Many at once: threads that start together, and whose errors are not lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

#: Nothing here takes as long; whoever waits longer waits for ever.
DEADLINE_SECONDS = 120.0


def at_once(works: Iterable[Callable[[], T]]) -> list[T]:
    """Run all in threads that begin at the same moment; answers in order, or the first error."""
    every = list(works)
    start = threading.Barrier(len(every))

    def run(work: Callable[[], T]) -> T:
        start.wait(DEADLINE_SECONDS)
        return work()

    with ThreadPoolExecutor(len(every)) as pool:
        futures = [pool.submit(run, work) for work in every]
    return [future.result() for future in futures]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
