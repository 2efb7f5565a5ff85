"""What the handlers really did: each appends lines to a file outside the store."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD_VARIABLE = "FREEHOLD_TEST_RECORD"


@dataclass(frozen=True)
class Line:
    """One step of one attempt. ``at`` is the machine's monotonic clock."""

    job: int
    token: int
    attempt: int
    pid: int
    what: str
    at: float


def record_step(ctx: Any, what: str) -> None:
    """Append a whole line. Safe from any process and thread, and right before a kill."""
    line = Line(ctx.job.job_id, ctx.lease.token, ctx.attempt, os.getpid(), what, time.monotonic())
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    file = os.open(os.environ[RECORD_VARIABLE], flags, 0o600)
    try:
        os.write(file, json.dumps(vars(line)).encode() + b"\n")
    finally:
        os.close(file)


class GrowingLines:
    """The documents of a file with a document in each line, to which others append. Each line is
    decoded once: waiting tests read the file many times a second."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_bytes = 0
        self._documents: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                # A line that is being written has no end yet: only whole lines count.
                whole, end, _ = file.read().rpartition(b"\n")
            self._read_bytes += len(whole) + len(end)
            self._documents += map(json.loads, whole.splitlines())
        return self._documents


class Record:
    """Reads the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = GrowingLines(path)

    def lines(self, job: int | None = None, what: str | None = None) -> list[Line]:
        return [
            Line(**line)
            for line in self._lines.read()
            if (job is None or line["job"] == job) and (what is None or line["what"] == what)
        ]

    def steps(self, job: int) -> list[str]:
        """The steps of one job, in order."""
        return [line.what for line in self.lines(job)]

    def starts(self, job: int) -> list[Line]:
        return self.lines(job, "start")


def record() -> Record:
    """The record of the test that this process belongs to."""
    return Record(Path(os.environ[RECORD_VARIABLE]))
