"""Whoever takes part writes down itself what it saw, into a file of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from freehold.lab.checker.record import FileLog, Record


def micros() -> int:
    """The clock of this machine, which is also the databases'."""
    return time.time_ns() // 1000


class Pen:
    """Of one process, or of one part of it."""

    def __init__(self, books: Path, name: str) -> None:
        self.name = name
        self._book = FileLog(books / name)

    def note(
        self,
        what: str,
        job: int = 0,
        token: int = 0,
        attempt: int = 0,
        /,
        *,
        who: str | None = None,
        call: str = "",
        at: int | None = None,
        **info: Any,
    ) -> None:
        moment = micros() if at is None else at
        self._book.write(Record(moment, who or self.name, what, job, token, attempt, call, info))

    def close(self) -> None:
        self._book.close()
