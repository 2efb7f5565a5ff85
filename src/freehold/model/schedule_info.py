"""A schedule as people see it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from freehold.model.schedule import CatchUp, Overlap
from freehold.model.state import State


class ScheduleState(StrEnum):
    """``skipping``: its last tick made no job, because the job before still lives."""

    ACTIVE = "active"
    SKIPPING = "skipping"
    PAUSED = "paused"
    ENDED = "ended"
    BROKEN = "broken"


class ScheduleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as people see it. It never contains the arguments of its jobs."""

    name: str
    state: ScheduleState
    #: The expression or interval, and its zone.
    time: str
    zone: str | None
    task: str
    queue: str
    overlap: Overlap
    catch_up: CatchUp
    within_seconds: float | None
    jitter_seconds: float
    ends_at: datetime | None
    next_at: datetime | None
    last_at: datetime | None
    last_job: int | None
    last_job_state: State | None
    fired: int
    missed: int
    skipped: int
    skipped_at: datetime | None
    #: The job for which the last skipped tick made none, and its state if it is still known.
    skipped_for: int | None
    skipped_for_state: State | None
    problem: str | None
    declared_by: str | None
    is_edited: bool
    edited_at: datetime | None
    edited_by: str | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    paused_until: datetime | None
