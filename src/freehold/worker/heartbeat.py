"""When a worker sends its heartbeat. See `store/verbs/workers.py`.

Every 2 s while it has jobs or some have ended since the last one, every 10 s while it is idle, and
at once after a change of its state or manager. A heartbeat counts for 30 s, three idle intervals,
so that one lost heartbeat does not make the worker look dead.
"""

from __future__ import annotations

from collections.abc import Callable

from freehold.model.worker_info import Heartbeat

BUSY_HEARTBEAT_SECONDS = 2.0
IDLE_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_EXPIRY_SECONDS = 30.0


class HeartbeatSchedule:
    """Remembers the last heartbeat. The lease renewer sends them, with a renewal if it can."""

    def __init__(self, current: Callable[[], Heartbeat]) -> None:
        #: Builds the heartbeat of this moment.
        self.current = current
        self._last: Heartbeat | None = None
        self._sent_at = 0.0

    def due_at(self) -> float:
        current, last = self.current(), self._last
        if last is None or (current.state, current.manager) != (last.state, last.manager):
            return 0.0
        is_idle = current == last and not current.running + current.waiting
        return self._sent_at + (IDLE_HEARTBEAT_SECONDS if is_idle else BUSY_HEARTBEAT_SECONDS)

    def sent(self, heartbeat: Heartbeat, now: float) -> None:
        self._last, self._sent_at = heartbeat, now
