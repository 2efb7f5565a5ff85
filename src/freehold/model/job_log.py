"""Progress and log lines that a handler records while it runs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.errors import BadInput

#: Number of lines kept per attempt, and characters kept per line.
LINES_LIMIT = 200
LINE_LIMIT = 1_000
#: Characters of an operator's or a handler's reason.
REASON_LIMIT = 500


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


def check_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise BadInput(f"reason={reason!r}: give a string")
    if len(reason) > REASON_LIMIT or "\0" in reason:
        raise BadInput(f"a reason has at most {REASON_LIMIT} characters and no NUL")
    if any("\ud800" <= char <= "\udfff" for char in reason):
        raise BadInput("the reason is not Unicode text: write it in UTF-8")
    return reason
