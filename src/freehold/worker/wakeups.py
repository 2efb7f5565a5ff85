"""What wakes the claimer and the sweeper of a worker.

The wake-ups are built before the parts. A part that has made work for another one wakes it here,
and knows nothing else of it:

    claim   a slot is free, the end of a job was written, or jobs may be ready
    sweep   a job was scheduled, flows have changed, or leases may have expired since the last one
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from freehold.store import notifications
from freehold.worker.lease_renewer import LeaseRenewer

SWEEP_SECONDS = 1.0


class Wakeups:
    """Belongs to the worker's event loop. The router, in the renewal thread, writes `is_listening`
    and reads `claimer_is_idle`."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self.claim = asyncio.Event()
        self.sweep = asyncio.Event()
        #: When the last sweep began.
        self.swept_at = 0.0
        #: Whether all jobs that were due, lost or parked when the worker started are ready by now.
        self.has_swept = False
        #: Notifications arrive, so the claimer polls only as a safety net.
        self.is_listening = False
        #: The last claim found no job.
        self.claimer_is_idle = False
        #: The last claim covered all queues for certain, and found no job.
        self.found_nothing = False
        #: Jobs may have become ready since the last empty claim.
        self.jobs_are_ready = False
        #: The queues that notifications have named since the last claim.
        self.named_queues: dict[str, None] = {}

    @property
    def is_idle(self) -> bool:
        """No job was found that could run, and no wake-up came since."""
        return self.found_nothing and self.has_swept and not self.claim.is_set()

    def jobs_ready(self, queue: str | None = None) -> None:
        """Jobs may be ready, of this queue at least: claim at once, and again soon."""
        if queue is not None:
            self.named_queues[queue] = None
        self.jobs_are_ready = True
        self.claim.set()

    def sweep_unless_recent(self, after: float = SWEEP_SECONDS / 2) -> None:
        """Sweep now, unless the last sweep began less than ``after`` seconds ago."""
        if self._now() - self.swept_at >= after:
            self.sweep.set()


class NotificationRouter:
    """Wakes the parts that a notification is for."""

    def __init__(
        self,
        owner: str,
        serves: Callable[[str], bool],
        renewer: LeaseRenewer,
        wakeups: Wakeups,
    ) -> None:
        """``serves``: whether the claimer takes jobs of this queue."""
        self._loop = asyncio.get_running_loop()
        self._stop_topic = notifications.stop_topic(owner)
        self._serves = serves
        self._renewer = renewer
        self._wakeups = wakeups

    def route(self, payload: str | None) -> None:
        """Called in the renewal thread. "": notifications may have been missed; None: they stop."""
        wakeups, call_soon = self._wakeups, self._loop.call_soon_threadsafe
        wakeups.is_listening = payload is not None
        if payload is None or self._loop.is_closed():
            return
        queue = notifications.queue_of(payload)
        if queue is not None:
            if self._serves(queue):
                call_soon(wakeups.jobs_ready, queue)
            return
        if payload in ("", self._stop_topic):
            self._renewer.wake(has_requests=True)
        if payload in ("", notifications.SCHEDULED):
            call_soon(wakeups.sweep.set)
        if payload == "" and wakeups.claimer_is_idle:
            call_soon(wakeups.jobs_ready)
