"""The only module that reads the machine's clocks.

Stores decide by the database's clock. SQLite has none, so its store uses the machine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

#: Microseconds since 1970, UTC.
Micros: TypeAlias = Callable[[], int]


def system_micros() -> int:
    return time.time_ns() // 1000


monotonic = time.monotonic


class VirtualClock:
    """A clock that advances only by `advance`. For tests and simulation."""

    def __init__(self, micros: int = 1_800_000_000_000_000) -> None:
        self.micros = micros

    def __call__(self) -> int:
        return self.micros

    def advance(self, seconds: float) -> None:
        self.micros += round(seconds * 1_000_000)
