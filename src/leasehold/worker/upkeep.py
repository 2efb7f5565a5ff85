"""What every tenant needs once in a while, also one that sleeps: see `sweeper`, last steps.

A process that starts may know tasks that nobody knew: jobs that were put aside for it come back
in the first round, which does not dawdle. From then on a round takes as long as the time between
two retentions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from leasehold.errors import LeaseholdError
from leasehold.store.database import Database
from leasehold.store.faces import AwaitedStore
from leasehold.telemetry import Telemetry, log
from leasehold.worker.sweeper import BATCH, RETENTION_SECONDS, SILENT_SECONDS

#: Between two tenants of the first round.
_APART_SECONDS = 0.02
_EMPTY_SECONDS = 5.0


class Upkeep:
    """One per host. What is broken is left to whoever looks at tenants."""

    def __init__(
        self, databases: Callable[[], list[Callable[[], Database]]], tasks: Iterable[str],
        history_days: float, telemetry: Telemetry,
    ) -> None:  # fmt: skip
        self._databases = databases
        self._tasks = sorted(tasks)
        self._history_days = history_days
        self._telemetry = telemetry

    async def run(self) -> None:
        apart = _APART_SECONDS
        while True:
            databases = self._databases()
            for database in databases:
                await self.visit(database)
                await asyncio.sleep(apart)
            if not databases:
                await asyncio.sleep(_EMPTY_SECONDS)
                continue
            apart = RETENTION_SECONDS / len(databases)

    async def visit(self, database: Callable[[], Database]) -> None:
        """Also when one works again: the next round may be an hour away."""
        try:
            store = AwaitedStore(database().async_session())
            await store.unpark(self._tasks, BATCH)
            while await store.retain(self._history_days, BATCH):
                pass
            await store.forget_workers(SILENT_SECONDS)
        except LeaseholdError as error:
            self._telemetry.count("store_errors", label="upkeep")
            log.debug("the upkeep of a tenant failed: %s", error)
