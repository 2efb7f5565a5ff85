"""The body of the handler in every measurement: it counts, and records how long its job waited.

A thread writes the count to a file every 50 ms. The harness reads the progress of a worker from
there, because a query would add to the cost that is being measured.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

WRITE_SECONDS = 0.05


@dataclass
class Count:
    """The progress of one process. Times are of the system clock, CPU is of this process only."""

    jobs: int = 0
    first: float = 0.0
    last: float = 0.0
    cpu_first: float = 0.0
    cpu_last: float = 0.0
    waited: list[float] = field(default_factory=list)


class Counter:
    """One for each worker process."""

    def __init__(self) -> None:
        self.count = Count()
        self._base = ""
        self._warm_up_jobs = 0

    def report_to(self, base: str, warm_up_jobs: int = 0) -> None:
        """``warm_up_jobs`` are counted, but start neither ``first`` nor ``cpu_first``."""
        self._base = base
        self._warm_up_jobs = warm_up_jobs

    def __call__(self, sent: float = 0.0) -> None:
        """A job has started; ``sent`` is the time of its enqueue, if latency is measured."""
        count, now = self.count, time.time()
        if not count.jobs:
            threading.Thread(target=self._report, daemon=True).start()
        if count.jobs == self._warm_up_jobs:
            count.first, count.cpu_first = now, time.process_time()
        count.jobs += 1
        count.last = now
        if sent:
            count.waited.append(now - sent)

    def _report(self) -> None:
        path, written = Path(f"{self._base}.{os.getpid()}"), -1
        while True:
            if self.count.jobs != written:
                written = self.count.jobs
                self.count.cpu_last = time.process_time()
                fresh = Path(f"{path}.fresh")
                fresh.write_text(json.dumps(asdict(self.count)))
                fresh.replace(path)
            time.sleep(WRITE_SECONDS)


#: The counter of this process.
tick = Counter()


def counts(base: Path) -> list[Count]:
    """The latest count of each worker that reports to ``base``."""
    return [
        Count(**json.loads(path.read_text()))
        for path in base.parent.glob(f"{base.name}.[0-9]*")
        if path.suffix != ".fresh"
    ]
