"""A host's row among the workers of the control store; of a managed host also slot and manager.

Its workers send their heartbeats to their tenants' stores, and an idle host has no worker. So the
manager reads here whether a host is alive and idle. The row serves no queue and knows no task: jobs
of the control store do not run there.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.worker_info import Heartbeat, WorkerState
from freehold.store_health import StorePart
from freehold.telemetry import Telemetry
from freehold.tenants.shared_slots import SharedSlots
from freehold.version import VERSION
from freehold.worker.heartbeat import HEARTBEAT_EXPIRY_SECONDS, HeartbeatSchedule, deregister
from freehold.worker.manager_link import ManagerLink

_CHECK_SECONDS = 0.25
_ERROR_SECONDS = 2.0


class RegistrationStore(Protocol):
    async def heartbeat(self, heartbeat: Heartbeat, heartbeat_seconds: float) -> None: ...

    async def remove_worker(self, owner: str) -> None: ...


class HostRegistration:
    """One per host. ``folder`` and ``slot_file``: of its manager, if it has one."""

    def __init__(
        self, store: RegistrationStore, owner: str, folder: Path | None, slot_file: int | None
    ) -> None:
        self._store = store
        self._owner = owner
        self._named = 0
        self._link: ManagerLink | None = None
        if folder is not None and slot_file is not None:
            self._link = ManagerLink(folder, slot_file, owner)

    def name_worker(self) -> str:
        """The owner of a worker of this host. By the host's name a manager that has seen it die
        finds the leases of all its workers: see `expire_leases`."""
        self._named += 1
        return f"{self._owner}.{self._named:x}"

    async def until_gone(self) -> None:
        """Returns when the manager is gone; never, if there is none."""
        if self._link is None:
            await asyncio.Event().wait()
        else:
            await self._link.until_gone(lambda: None)

    async def run(
        self, slots: SharedSlots, is_draining: Callable[[], bool], telemetry: Telemetry
    ) -> None:
        """Sends heartbeats until canceled."""

        def current() -> Heartbeat:
            return Heartbeat(
                owner=self._owner,
                host=socket.gethostname(),
                pid=os.getpid(),
                version=VERSION,
                concurrency=slots.count,
                queues=(),
                tasks=(),
                state=WorkerState.DRAINING if is_draining() else WorkerState.WORKING,
                running=slots.use.running,
                waiting=slots.use.held - slots.use.running,
                manager=None if self._link is None else self._link.manager,
            )

        schedule = HeartbeatSchedule(current)
        part = telemetry.store_health.part("registration of the host")
        while True:
            if asyncio.get_running_loop().time() >= schedule.due_at():
                await self._send(schedule, part)
            await asyncio.sleep(_CHECK_SECONDS)

    async def _send(self, schedule: HeartbeatSchedule, part: StorePart) -> None:
        heartbeat, now = schedule.current(), asyncio.get_running_loop().time()
        try:
            await self._store.heartbeat(heartbeat, HEARTBEAT_EXPIRY_SECONDS)
        except StoreError as error:
            await part.wait(part.failed(error, _ERROR_SECONDS))
            return
        part.works()
        schedule.sent(heartbeat, now)

    async def remove(self) -> None:
        await deregister(self._store, self._owner)
