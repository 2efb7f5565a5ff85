"""Records: one line for everything that a handler, a client or an operator saw itself.

They are kept apart from the store, which is what they are held against: in memory in the
simulation, in a file per process where processes are real. A line is one write, so a process
that is killed leaves whole lines.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from freehold.decoders import decoder


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who saw what, when (microseconds since 1970).

    what     by        fields
    started  handler   job token attempt; info: target queue owner limit_key tenant made_by
    step     handler   job token, again and again while it runs
    ended    handler   job token; info: how (returned, error, snooze, stopped, …), seconds
    asked    anybody   call; info: the question (an enqueue, an operator's verb)
    told     anybody   call; info: the answer, or the error's name
    fault    the world info: kind, until; grave: whether it can cost a lease
    begun    worker    its owner is `who`
    exited   worker    info: code
    healed   the world all faults are over
    waits    the world job; info: seconds. It can be claimed, and a slot is free
    """

    at: int
    who: str
    what: str
    job: int = 0
    token: int = 0
    attempt: int = 0
    call: str = ""
    info: dict[str, Any] = {}


_record_of = decoder(Record).decode


class RecordLog(Protocol):
    """Where records go."""

    def write(self, record: Record) -> None: ...


class MemoryLog:
    """For the simulation."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, record: Record) -> None:
        self.records.append(record)


class FileLog:
    """For processes that may be killed at any moment: every line is one append."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)

    def write(self, record: Record) -> None:
        os.write(self._file, msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_logs(paths: Iterable[Path]) -> list[Record]:
    """All records of many processes, in the order of their time.

    A last line without its end was cut off by a full disk: it was never written.
    """
    found: list[Record] = []
    for path in sorted(paths):
        lines = path.read_bytes().split(b"\n")
        found += [_record_of(line) for line in lines[:-1]]
    return sorted(found, key=lambda record: record.at)
