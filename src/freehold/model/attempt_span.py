"""Attempts as spans of time, for a picture of what each worker did."""

from __future__ import annotations

from datetime import datetime

import msgspec


class AttemptSpan(msgspec.Struct, frozen=True):
    """One attempt: leased, started, ended. ``outcome``: running, succeeded, or the kind of the
    event that ended it. Events have no task and queue."""

    job_id: int
    task: str | None
    queue: str | None
    worker: str
    number: int
    token: int
    leased_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str


class AttemptSpans(msgspec.Struct, frozen=True):
    """By worker and time. ``complete``: false if there are more than these. ``looked_until``: the
    creation time of the oldest finished job that was examined, None if all have been; an attempt of
    an older job that succeeded is missing."""

    spans: tuple[AttemptSpan, ...]
    complete: bool
    looked_until: datetime | None
