"""The job log: progress and lines that a handler writes under its lease."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from freehold.model.job_log import LogLine
from freehold.model.timestamps import time_of
from freehold.store.rows import json_text
from freehold.store.statements import Verb, read, write
from freehold.store.types import LogChunk


def append_log(owner: str, chunks: Sequence[LogChunk]) -> Verb[tuple[int, ...]]:
    """Store progress and log lines. Returns the jobs whose lease was lost: nothing of them was
    stored. Repeating a write is safe: lines have numbers."""
    if not chunks:
        return ()
    rows = [
        {
            "id": chunk.lease.job_id,
            "token": chunk.lease.token,
            "progress": json_text(chunk.progress),
            "lines": msgspec.to_builtins(chunk.lines),
        }
        for chunk in chunks
    ]
    held = {job_id for (job_id,) in (yield from write("append_log", rows, owner=owner))}
    return tuple(chunk.lease.job_id for chunk in chunks if chunk.lease.job_id not in held)


def read_log(job_id: int, newest: int | None = None) -> Verb[list[LogLine]]:
    """The stored log lines of a job, oldest first; only so many of the newest, if given."""
    rows = yield from read("read_log", id=job_id, newest=newest)
    return [
        LogLine(job, token, number, time_of(at), text)
        for job, token, number, at, text in reversed(rows)
    ]
