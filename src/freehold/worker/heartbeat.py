"""When a worker says that it lives, and what it says. See `store/verbs/workers.py`.

With something to tell (jobs in hand, or ended since), every 2 s; with nothing, every 10 s, as
rarely as polls back off; a change of state or of manager, at once. Its word counts for 30 s:
three idle beats, so that one lost beat makes nobody think it dead.
"""

from __future__ import annotations

from collections.abc import Callable

from freehold.model.worker_info import Heartbeat

BUSY_HEARTBEAT_SECONDS = 2.0
IDLE_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_EXPIRY_SECONDS = 30.0


class HeartbeatSchedule:
    """Knows what was said last. Saying it is the keeper's, who may be writing anyway."""

    def __init__(self, look: Callable[[], Heartbeat]) -> None:
        self._look = look
        self._said: Heartbeat | None = None
        self._said_at = 0.0
        self._not_before = 0.0

    def due_at(self) -> float:
        return max(self._not_before, self._due_at(self._look()))

    def _due_at(self, beat: Heartbeat) -> float:
        said = self._said
        if said is None or (beat.state, beat.manager) != (said.state, said.manager):
            return 0.0
        quiet = beat == said and not beat.running + beat.waiting
        return self._said_at + (IDLE_HEARTBEAT_SECONDS if quiet else BUSY_HEARTBEAT_SECONDS)

    def word(self) -> Heartbeat:
        return self._look()

    def said(self, beat: Heartbeat, now: float) -> None:
        self._said, self._said_at = beat, now

    def failed(self, now: float) -> None:
        """The store did not hear it: no hurry, the word before still counts."""
        self._not_before = now + BUSY_HEARTBEAT_SECONDS
