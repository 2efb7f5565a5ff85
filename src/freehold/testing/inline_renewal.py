"""The lease renewer on the worker's own loop: on virtual time no handler can block it."""

from __future__ import annotations

import asyncio

from freehold.store.database import Database
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.renewal_thread import OnWorkerNotification


class RenewalTask:
    """A RenewalThread without a thread and without a watchdog for a blocked loop."""

    def __init__(
        self,
        renewer: LeaseRenewer,
        database: Database,
        _watchdog: LoopWatchdog,
        on_notification: OnWorkerNotification,
    ) -> None:
        self._renewer = renewer
        self._database = database
        self._on_notification = on_notification
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def start(self) -> None:
        self._tasks = (
            asyncio.create_task(self._renewer.run(), name="renewer"),
            asyncio.create_task(self._database.listen(self._on_notification), name="listener"),
        )

    async def crashed(self) -> None:
        renewer = self._tasks[0]
        await asyncio.wait({renewer})
        renewer.result()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
