"""A log file that the demo's handlers write, independent of the store.

The check needs a second source besides the store. Every line is one append, so the order of the
lines is the order of events over all processes, without any clock.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from freehold.decoders import decoder

PATH_VARIABLE = "FREEHOLD_DEMO_RECORD"
HandlerEvent: TypeAlias = Literal["started", "succeeded", "failed", "canceled", "stopped"]


class HandlerRecord(msgspec.Struct, frozen=True):
    """One event of one attempt."""

    job: int
    attempt: int
    pid: int
    event: HandlerEvent


_decoder = decoder(HandlerRecord)


def append(job: int, attempt: int, event: HandlerEvent) -> None:
    """Safe from any process; a kill never leaves a partial line."""
    record = msgspec.json.encode(HandlerRecord(job, attempt, os.getpid(), event)) + b"\n"
    file = os.open(os.environ[PATH_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, record)
    finally:
        os.close(file)


def read(path: Path) -> list[HandlerRecord]:
    """Returns all records in order."""
    if not path.exists():
        return []
    return _decoder.decode_lines(path.read_bytes())
