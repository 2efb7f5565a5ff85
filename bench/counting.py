"""What a handler does in every measurement: it counts, and tells how long its job has waited.

A thread writes the count to a file now and then, so that the harness can see how far a worker is
without asking the database, which would cost what is being measured.
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
    """How far one process is. Times by the wall, CPU of this process alone."""

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

    def report_to(self, base: str) -> None:
        self._base = base

    def __call__(self, sent: float = 0.0) -> None:
        """A job has started; ``sent`` is when it was enqueued, where that is asked for."""
        count, now = self.count, time.time()
        if not count.jobs:
            count.first, count.cpu_first = now, time.process_time()
            threading.Thread(target=self._report, daemon=True).start()
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


#: Of this process.
tick = Counter()


def counts(base: Path) -> list[Count]:
    """What the workers that report to ``base`` have said last."""
    return [
        Count(**json.loads(path.read_text()))
        for path in base.parent.glob(f"{base.name}.[0-9]*")
        if path.suffix != ".fresh"
    ]
