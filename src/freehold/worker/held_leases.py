"""The leases in a worker's hand, seen by the event loop and by the keeper's thread.

A Held is made by the claimer, started by the runner, renewed and stopped by the keeper, and
let go by the finisher. Times are the event loop's monotonic ones: the database decides who
owns a job, but a worker must know by itself when it may not rely on its lease any more.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from freehold.model.job import Attempt, Request
from freehold.store.types import LeaseKey

if TYPE_CHECKING:
    from freehold.worker.job_log.buffer import JobLogBuffer


class StopReason(StrEnum):
    """Why a handler is told to stop."""

    CANCELED = "canceled"
    PAUSED = "paused"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"
    DRAIN = "drain"


class HeldLease:
    """One lease in hand."""

    __slots__ = (
        "attempt",
        "deadline",
        "ended",
        "fenced",
        "finished",
        "is_limited",
        "notes",
        "on_stop",
        "request",
        "saw_stop",
        "shown",
        "started",
        "stop_reason",
        "taken_at",
        "valid_until",
    )

    def __init__(
        self,
        attempt: Attempt,
        valid_until: float,
        *,
        taken_at: float = 0.0,
        is_limited: bool = False,
    ) -> None:
        self.attempt = attempt
        self.taken_at = taken_at
        #: While it waits it takes room under a limit that others could use.
        self.is_limited = is_limited
        #: Until then the lease certainly holds: counted from when its renewal was *sent*.
        self.valid_until = valid_until
        self.started: float | None = None
        #: When its execution timeout ends it.
        self.deadline: float | None = None
        self.shown = False
        #: Its outcome is on the way to the store, which will say whether the lease held.
        self.ended = False
        #: Its handler has a fenced transaction open.
        self.fenced = False
        #: Its handler has finished the job itself: nobody else writes its end.
        self.finished = False
        #: What its handler says; None where it has no context to say it by.
        self.notes: JobLogBuffer | None = None
        self.request: Request | None = None
        self.stop_reason: StopReason | None = None
        #: Its handler has asked, and was told to stop.
        self.saw_stop = False
        self.on_stop: Callable[[StopReason], None] | None = None

    @property
    def key(self) -> LeaseKey:
        return LeaseKey(self.attempt.job_id, self.attempt.token)

    def was_stopped_by(self, *reasons: StopReason) -> bool:
        return self.stop_reason in reasons

    def stop(self, reason: StopReason) -> bool:
        """Tell the handler, once. A lost lease outweighs what was said before."""
        if self.stop_reason is not None and reason is not StopReason.LEASE_LOST:
            return False
        if self.stop_reason is StopReason.LEASE_LOST:
            return False
        self.stop_reason = reason
        if self.on_stop is not None:
            self.on_stop(reason)
        return True


class HeldLeases:
    """All leases of one worker. Each operation is atomic under the interpreter's lock."""

    def __init__(self) -> None:
        self._held: dict[int, HeldLease] = {}

    def take(self, held: HeldLease) -> None:
        self._held[held.attempt.job_id] = held

    def let_go(self, held: HeldLease) -> None:
        if self._held.get(held.attempt.job_id) is held:
            self._held.pop(held.attempt.job_id, None)  # two threads may let go at once

    def get(self, key: LeaseKey) -> HeldLease | None:
        held = self._held.get(key.job_id)
        return held if held is not None and held.attempt.token == key.token else None

    def all(self) -> list[HeldLease]:
        return list(self._held.values())

    def __len__(self) -> int:
        return len(self._held)
