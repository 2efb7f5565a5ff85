"""Progress and log lines that a handler records while it runs."""

from __future__ import annotations

from datetime import datetime

import msgspec

#: Number of lines kept per attempt, and characters kept per line.
LINES_LIMIT = 200
LINE_LIMIT = 1_000


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of an attempt; ``attempt`` is its number."""

    done: float
    total: float | None = None
    message: str | None = None
    attempt: int = 1


class LogLine(msgspec.Struct, frozen=True):
    """A line of a job's log. ``token`` identifies the attempt, ``number`` counts its lines."""

    job_id: int
    token: int
    number: int
    at: datetime
    line: str
