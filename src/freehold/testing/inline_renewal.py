"""The keeper on the worker's own loop: on virtual time nothing can block it."""

from __future__ import annotations

import asyncio

from freehold.store.database import Database
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.renewal_thread import OnHint


class RenewalTask:
    """What KeeperThread does, without its thread. Nobody has to watch for a blocked loop."""

    def __init__(
        self, keeper: LeaseRenewer, database: Database, _watch: LoopWatchdog, heard: OnHint
    ) -> None:
        self._keeper = keeper
        self._database = database
        self._heard = heard
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    def start(self) -> None:
        self._tasks = (
            asyncio.create_task(self._keeper.run(), name="keeper"),
            asyncio.create_task(self._database.listen(self._heard), name="listener"),
        )

    async def crashed(self) -> None:
        keeper = self._tasks[0]
        await asyncio.wait({keeper})
        keeper.result()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
