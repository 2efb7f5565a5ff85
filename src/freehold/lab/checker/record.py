"""Records: what a handler, a client or an operator did and observed itself.

The checker compares them with the store, so they are kept outside of it: in memory in the
simulation, in one file per process for real processes. Every record is a line and every line is
one write, so a killed process leaves complete lines.
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
    """``at`` is in microseconds since 1970; ``actor`` is the machine or process concerned.

    kind       written by  fields
    started    handler     job token attempt; info: target queue owner limit_key tenant made_by
    step       handler     job token, repeatedly while it runs
    called     handler     job token; info: step value. A durable step, or its transaction, runs
    got        handler     job token; info: step value. What a step, a sleep or a wait returned
    suspended  handler     job token; info: step waits (sleep, signal, gather), before it ended
    ended      handler     job token; info: how (returned, error, snooze, stopped, unknown: the
                           outcome of a commit, …), seconds
    requested  caller      call; info: an enqueue, a signal or an operator's verb
    responded  caller      call; info: the result, or the name of the error
    recovered  world       job token. Its lease had expired, and a recovery has ended it
    fault      world       info: kind, until; grave: whether it can cost a lease; to: the statements
    begun      worker      actor: the owner of its leases
    exited     worker      info: code
    healed     world       all faults are over
    waits      world       job; info: seconds. It is claimable, and a slot is free
    """

    at: int
    actor: str
    kind: str
    job: int = 0
    token: int = 0
    attempt: int = 0
    call: str = ""
    info: dict[str, Any] = {}


_record_of = decoder(Record).decode


class RecordLog(Protocol):
    """The destination of records."""

    def write(self, record: Record) -> None: ...


class MemoryLog:
    """For the simulation."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, record: Record) -> None:
        self.records.append(record)


class FileLog:
    """For processes that may be killed at any time: every line is one append."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)

    def write(self, record: Record) -> None:
        os.write(self._file, msgspec.json.encode(record) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_logs(paths: Iterable[Path]) -> list[Record]:
    """The records of many processes, ordered by time.

    A last line without a newline was cut off by a full disk and is ignored.
    """
    found: list[Record] = []
    for path in sorted(paths):
        lines = path.read_bytes().split(b"\n")
        found += [_record_of(line) for line in lines[:-1]]
    return sorted(found, key=lambda record: record.at)
