"""Every process of a run writes its own records to its own file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from freehold.lab.checker.record import FileLog, Record


def micros() -> int:
    """The clock of this machine, which the database uses too."""
    return time.time_ns() // 1000


class Recorder:
    """Writes the records of one process, or of one part of it."""

    def __init__(self, record_folder: Path, name: str) -> None:
        self.name = name
        self._log = FileLog(record_folder / name)

    def record(
        self,
        kind: str,
        job: int = 0,
        token: int = 0,
        attempt: int = 0,
        /,
        *,
        actor: str | None = None,
        call: str = "",
        at: int | None = None,
        **info: Any,
    ) -> None:
        timestamp = micros() if at is None else at
        self._log.write(
            Record(timestamp, actor or self.name, kind, job, token, attempt, call, info)
        )

    def close(self) -> None:
        self._log.close()
