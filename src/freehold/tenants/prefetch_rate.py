"""How many jobs to claim ahead in a process whose slots many tenants share.

The prefetch is about a tenth of a second's work for all slots. A single worker derives its size
from how fast jobs end (`worker/slots.py`). Among tenants that rate would measure the claims
instead: a claim brings as few jobs as its tenant's share of the slots, and the slots are empty
until the next one. So here the size follows from how long a job takes.
"""

from __future__ import annotations

from collections.abc import Callable

from freehold.worker.slots import AHEAD_LIMIT, AHEAD_SECONDS

_WINDOW_SECONDS = 0.05
_IDLE_SECONDS = 0.5


class PrefetchRate:
    """Call `record` before the number of running jobs changes."""

    def __init__(self, slots: int, now: Callable[[], float]) -> None:
        self._slots = slots
        self._now = now
        self._since = self._at = now()
        #: Seconds of slots in use, and jobs that ended, in this window.
        self._used = 0.0
        self._ended = 0
        #: None if nothing has run recently.
        self._seconds_per_job: float | None = None

    def record(self, running: int, *, ended: int = 0) -> None:
        now = self._now()
        self._used += running * (now - self._at)
        self._at = now
        self._ended += ended

    def ahead(self, running: int) -> int:
        """How many jobs to hold beside those that run."""
        self.record(running)
        if self._at - self._since >= _WINDOW_SECONDS:
            self._close_window(is_idle=not running)
        if self._seconds_per_job is None:
            return 0
        work = self._slots * AHEAD_SECONDS
        return (
            AHEAD_LIMIT
            if self._seconds_per_job * AHEAD_LIMIT <= work
            else int(work / self._seconds_per_job)
        )

    def _close_window(self, is_idle: bool) -> None:
        """After an idle time the old value is dropped: the next jobs may be different ones."""
        was_idle = is_idle and self._at - self._since >= _IDLE_SECONDS
        measured = self._used / max(1, self._ended)
        before = self._seconds_per_job
        if was_idle or not (self._used or self._ended):
            self._seconds_per_job = None
        elif before is None:
            self._seconds_per_job = measured
        elif self._ended:
            self._seconds_per_job = (before + measured) / 2
        else:  # no job has ended, so they take at least as long as the window
            self._seconds_per_job = max(before, measured)
        self._used, self._ended, self._since = 0.0, 0, self._at
