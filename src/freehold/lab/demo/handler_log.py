"""What really happened, told by the handlers themselves: lines in a file that is no store.

The store cannot be a witness in its own case. Every line is appended whole, so that the order of
the lines is the order of what happened, over all processes and without any clock.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from freehold.decoders import decoder

VARIABLE = "FREEHOLD_DEMO_RECORD"
HandlerMoment: TypeAlias = Literal["started", "succeeded", "failed", "canceled", "stopped"]


class HandlerRecord(msgspec.Struct, frozen=True):
    """One thing that one attempt did."""

    job: int
    attempt: int
    pid: int
    word: HandlerMoment


_lines = decoder(HandlerRecord)


def append(job: int, attempt: int, word: HandlerMoment) -> None:
    """Safe from any process, and at any moment before a kill."""
    line = msgspec.json.encode(HandlerRecord(job, attempt, os.getpid(), word)) + b"\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def read(path: Path) -> list[HandlerRecord]:
    """All of them, in order."""
    if not path.exists():
        return []
    return _lines.decode_lines(path.read_bytes())
