"""What is counted and logged. Arguments of jobs never are."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from typing import Any

log = logging.getLogger("leasehold")

COUNTERS = {
    "claims": "claim statements sent",
    "claimed": "jobs leased",
    "finished": "attempts whose end was accepted, by outcome",
    "retried": "attempts that led to another one",
    "recovered": "jobs taken back after their lease ran out",
    "stale_writes": "writes that were refused because the lease was lost",
    "lost_leases": "leases lost while their handler was running",
    "timeouts": "attempts stopped by their timeout",
    "loop_blocks": "times that a handler blocked the event loop",
    "store_errors": "statements that failed and were tried again, by part",
}


class Telemetry:
    """Counters of one process, and the log. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, name: str, amount: int = 1, label: str = "") -> None:
        assert name in COUNTERS, name
        with self._lock:
            self._counts[name, label] += amount

    def total(self, name: str, label: str | None = None) -> int:
        with self._lock:
            return sum(
                n for (key, lab), n in self._counts.items() if key == name and label in (None, lab)
            )

    def counts(self) -> dict[tuple[str, str], int]:
        with self._lock:
            return dict(self._counts)


def fields(**values: Any) -> dict[str, Any]:
    """Fields of a log record, under one name so that they meet no attribute of the record."""
    return {"leasehold": values}
