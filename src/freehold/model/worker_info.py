"""A worker as others see it: what it says of itself, and until when that counts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class WorkerState(StrEnum):
    """Working, or on its way out; stuck is one whose handler ignores its stop."""

    WORKING = "working"
    DRAINING = "draining"
    STUCK = "stuck"


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself at one moment."""

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
    #: Attempts that ended there since it started.
    finished: int = 0
    manager: str | None = None


class LiveWorker(Heartbeat, frozen=True, kw_only=True):
    """The same as it was heard, by the store's clock."""

    started_at: datetime
    seen_at: datetime
    expires_at: datetime

    @property
    def is_idle(self) -> bool:
        return self.state is WorkerState.WORKING and self.running + self.waiting == 0
