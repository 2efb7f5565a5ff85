"""Functions that run at the same time in threads, and waiting for a condition."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

#: Every wait in these tests ends earlier, unless it would never end.
DEADLINE_SECONDS = 120.0


def run_concurrently(functions: Iterable[Callable[[], T]]) -> list[T]:
    """Runs all functions in threads that start together. Returns their results in order, or raises
    the first error."""
    all_functions = list(functions)
    start = threading.Barrier(len(all_functions))

    def run(function: Callable[[], T]) -> T:
        start.wait(DEADLINE_SECONDS)
        return function()

    with ThreadPoolExecutor(len(all_functions)) as pool:
        futures = [pool.submit(run, function) for function in all_functions]
    return [future.result() for future in futures]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timeout while waiting until {what}"
        time.sleep(0.005)
