"""Counters, measurements and logs of one process. They never contain arguments of jobs."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from freehold.store_health import StoreHealth

log = logging.getLogger("freehold")


class RunningAttempt(Protocol):
    """What log lines name of an attempt."""

    @property
    def job_id(self) -> int: ...

    @property
    def task(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def queue(self) -> str: ...


#: The attempt that the running code belongs to. Coroutines and threads of a handler inherit it.
running_attempt: ContextVar[RunningAttempt | None] = ContextVar("running_attempt", default=None)

#: The context variables that were carried to the running handler, by name.
carried_fields: ContextVar[Mapping[str, Any]] = ContextVar("carried_fields", default={})  # noqa: B039 - never changed

#: The tenant whose worker the running code belongs to, in a process that serves several.
running_tenant: ContextVar[str | None] = ContextVar("running_tenant", default=None)

COUNTERS = {
    "claims": "claim statements sent",
    "claimed": "jobs leased",
    "finished": "attempts that ended, by outcome",
    "steps": "steps of handlers that were stored",
    "retried": "attempts whose job was queued again: retries, snoozes and drains",
    "recovered": "jobs that a sweeper took back after their lease expired",
    "late": "jobs canceled because they had not started by their time",
    "set_aside": "jobs paused because the database refuses to claim or recover them",
    "ticks_fired": "ticks of schedules that made a job",
    "ticks_skipped": "ticks of schedules that made none because the job before was live",
    "ticks_missed": "ticks of schedules that were due while nothing swept, and made no job",
    "lanes_freed": "stalled lanes whose next job was promoted",
    "stale_writes": "late writes, refused or given up because the lease was lost, by write",
    "lost_leases": "leases that their owner found lost before the attempt ended",
    "timeouts": "attempts stopped by their timeout",
    "loop_blocks": "times that a handler blocked the event loop",
    "store_errors": "statements that failed and were retried, by part",
    "http_denied": "requests to the API that were denied, by status",
}
#: The name of a counter's label. A counter listed here is always counted with a label, any other
#: counter never: /metrics exports nothing else.
LABELS = {
    "finished": "outcome",
    "stale_writes": "write",
    "store_errors": "part",
    "http_denied": "status",
}
#: Labels that are known in advance: a counter without events is exported as 0, not left out.
LABEL_VALUES = {
    "stale_writes": ("append_log", "finish", "step", "transaction"),
    "http_denied": ("401", "403"),
}
GAUGES = {
    "slots": "jobs that this worker can run at once",
    "slots_running": "slots in use",
    "slots_waiting": "jobs claimed ahead that wait for a slot",
}
#: One measurement per statement, however many jobs it handles.
DURATIONS = {
    "claim_seconds": "duration of claim statements",
    "finish_seconds": "duration of finish statements",
}
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram(NamedTuple):
    """The number of measurements in each bucket (the last: above all bounds), and their sum."""

    counts: tuple[int, ...]
    total_seconds: float


class Telemetry:
    """Counters, durations and gauges. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._measured = {name: [0] * (len(BUCKETS) + 1) for name in DURATIONS}
        self._seconds = dict.fromkeys(DURATIONS, 0.0)
        self._gauges: dict[str, Callable[[], float]] = {}
        self.store_health = StoreHealth(log)

    def count(self, name: str, amount: int = 1, label: str = "") -> None:
        assert name in COUNTERS, name
        assert bool(label) == (name in LABELS), f"{name}: {label!r}"
        with self._lock:
            self._counts[name, label] += amount

    #: For measurements: many statements are faster than the resolution of an event loop's clock.
    now = staticmethod(time.monotonic)

    def measure(self, name: str, seconds: float) -> None:
        with self._lock:
            self._measured[name][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[name] += seconds

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add a gauge. It is read by the thread that reports the metrics."""
        assert name in GAUGES, name
        self._gauges[name] = read

    def total(self, name: str, label: str | None = None) -> int:
        with self._lock:
            return sum(
                n for (key, lab), n in self._counts.items() if key == name and label in (None, lab)
            )

    def counts(self) -> dict[tuple[str, str], int]:
        with self._lock:
            return dict(self._counts)

    def histogram(self, name: str) -> Histogram:
        with self._lock:
            return Histogram(tuple(self._measured[name]), self._seconds[name])

    def gauges(self) -> dict[str, float]:
        return {name: read() for name, read in self._gauges.items()}


def fields(**values: Any) -> dict[str, Any]:
    """Fields of a log record, under one name to avoid collisions with its attributes."""
    return {"freehold": values}
