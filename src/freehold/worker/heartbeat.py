"""When a worker sends its heartbeat. See `store/verbs/workers.py`.

Every 2 s while it has jobs or some have ended since the last one, every 10 s while it is idle, and
at once after a change of its state or manager. A heartbeat counts for 30 s, three idle intervals,
so that one lost heartbeat does not make the worker look dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.outcome import NEVER_STARTED
from freehold.model.worker_info import Heartbeat, WorkerState
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.version import VERSION
from freehold.worker.config import WorkerSettings
from freehold.worker.drain import Drain
from freehold.worker.manager_link import ManagerLink
from freehold.worker.slots import Slots

BUSY_HEARTBEAT_SECONDS = 2.0
IDLE_HEARTBEAT_SECONDS = 10.0
HEARTBEAT_EXPIRY_SECONDS = 30.0
_DEREGISTER_SECONDS = 2.0


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


class WorkerHeartbeat:
    """Describes a worker at this moment. Also called in the renewal thread."""

    def __init__(
        self,
        owner: str,
        settings: WorkerSettings,
        tasks: Registry,
        slots: Slots,
        drain: Drain,
        telemetry: Telemetry,
        manager_link: ManagerLink | None,
    ) -> None:
        self._owner = owner
        self._host = socket.gethostname()
        self._settings = settings
        self._tasks = tuple(tasks.names)
        self._slots = slots
        self._drain = drain
        self._telemetry = telemetry
        self._manager_link = manager_link

    def current(self) -> Heartbeat:
        state = WorkerState.DRAINING if self._drain.requested.is_set() else WorkerState.WORKING
        total = self._telemetry.total
        return Heartbeat(
            owner=self._owner,
            host=self._host,
            pid=os.getpid(),
            version=VERSION,
            concurrency=self._settings.concurrency,
            queues=self._settings.queues,
            tasks=self._tasks,
            state=WorkerState.STUCK if self._drain.stuck_jobs else state,
            running=len(self._slots.running),
            waiting=len(self._slots.waiting),
            finished=total("finished") - sum(total("finished", each) for each in NEVER_STARTED),
            manager=self._manager_link.manager if self._manager_link else None,
        )


class WorkerRows(Protocol):
    async def remove_worker(self, owner: str) -> None: ...


async def deregister(store: WorkerRows, owner: str) -> None:
    """Removes the heartbeat of a worker or host that ends. If that fails, the heartbeat expires."""
    with contextlib.suppress(StoreError, TimeoutError):
        async with asyncio.timeout(_DEREGISTER_SECONDS):
            await store.remove_worker(owner)
