"""A worker as the store lists it: its last heartbeat, and when that expires."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class WorkerState(StrEnum):
    """STUCK: a handler does not stop, so the worker drains and asks to be replaced."""

    WORKING = "working"
    DRAINING = "draining"
    STUCK = "stuck"


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reports about itself."""

    owner: str
    host: str
    pid: int
    concurrency: int
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    version: str
    state: WorkerState = WorkerState.WORKING
    running: int = 0
    waiting: int = 0
    #: Attempts that ended since the worker started.
    finished: int = 0
    manager: str | None = None


class LiveWorker(Heartbeat, frozen=True, kw_only=True):
    """A heartbeat with the times at which the store recorded it."""

    started_at: datetime
    seen_at: datetime
    expires_at: datetime

    @property
    def is_idle(self) -> bool:
        return self.state is WorkerState.WORKING and self.running + self.waiting == 0
