"""What a handler says while it runs: how far it is, and lines for its job's log."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.errors import BadInput

#: Lines of one attempt that are kept, and the longest of them, in characters.
LINES_LIMIT = 200
LINE_LIMIT = 1_000
#: The longest reason for something.
REASON_LIMIT = 500


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far an attempt said it was; ``attempt`` is its number."""

    done: float
    total: float | None = None
    message: str | None = None
    attempt: int = 1


class LogLine(msgspec.Struct, frozen=True):
    """A line of a job's log: of which attempt, by its token; which of its lines; and when."""

    job_id: int
    token: int
    number: int
    at: datetime
    line: str


def check_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise BadInput(f"reason={reason!r}: give a text")
    if len(reason) > REASON_LIMIT or "\0" in reason:
        raise BadInput(f"a reason has at most {REASON_LIMIT} characters and no NUL")
    if any("\ud800" <= letter <= "\udfff" for letter in reason):
        raise BadInput("the reason is not Unicode text: write it in UTF-8")
    return reason
