"""What really happened, told by the handlers themselves: lines in a file that is no store.

The store cannot be a witness in its own case. Every line is appended whole, so that the order of
the lines is the order of what happened, over all processes and without any clock.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from leasehold.typed import decoder

VARIABLE = "LEASEHOLD_DEMO_RECORD"
Word: TypeAlias = Literal["started", "succeeded", "failed", "canceled", "stopped"]


class Line(msgspec.Struct, frozen=True):
    """One thing that one attempt did."""

    job: int
    attempt: int
    pid: int
    word: Word


_lines = decoder(Line)


def say(job: int, attempt: int, word: Word) -> None:
    """Safe from any process, and at any moment before a kill."""
    line = msgspec.json.encode(Line(job, attempt, os.getpid(), word)) + b"\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def read(path: Path) -> list[Line]:
    """All of them, in order."""
    if not path.exists():
        return []
    return _lines.decode_lines(path.read_bytes())
