"""How soon the slots of a process turn over, where many tenants share them.

What is claimed ahead is about a tenth of a second's work for all slots. A single worker sees from
how fast jobs end how many that are. Among tenants it would see how fast single claims are: each
brings as few jobs as its tenant's share of the slots, which then stand empty. So here it follows
from how long a job takes.
"""

from __future__ import annotations

from collections.abc import Callable

from freehold.worker.slots import AHEAD_LIMIT, AHEAD_SECONDS

_WINDOW_SECONDS = 0.05
_PAUSE_SECONDS = 0.5


class PrefetchRate:
    """Is told before the number of running jobs changes."""

    def __init__(self, slots: int, now: Callable[[], float]) -> None:
        self._slots = slots
        self._now = now
        self._since = self._at = now()
        #: Seconds of slots in use, and jobs that ended, in this window.
        self._used = 0.0
        self._ended = 0
        #: None: nothing has run of late.
        self._seconds_a_job: float | None = None

    def changes(self, running: int, *, ended: int = 0) -> None:
        now = self._now()
        self._used += running * (now - self._at)
        self._at = now
        self._ended += ended

    def ahead(self, running: int) -> int:
        """How many to have in hand beside those that run."""
        self.changes(running)
        if self._at - self._since >= _WINDOW_SECONDS:
            self._learn(is_idle=not running)
        if self._seconds_a_job is None:
            return 0
        work = self._slots * AHEAD_SECONDS
        return (
            AHEAD_LIMIT
            if self._seconds_a_job * AHEAD_LIMIT <= work
            else int(work / self._seconds_a_job)
        )

    def _learn(self, is_idle: bool) -> None:
        """After a pause nothing is known: other jobs may come than before."""
        paused = is_idle and self._at - self._since >= _PAUSE_SECONDS
        seen = self._used / max(1, self._ended)
        before = self._seconds_a_job
        if paused or not (self._used or self._ended):
            self._seconds_a_job = None
        elif before is None:
            self._seconds_a_job = seen
        elif self._ended:
            self._seconds_a_job = (before + seen) / 2
        else:  # none of them has ended: they take longer than that
            self._seconds_a_job = max(before, seen)
        self._used, self._ended, self._since = 0.0, 0, self._at
