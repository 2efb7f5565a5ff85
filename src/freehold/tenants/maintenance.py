"""What every tenant needs once in a while, also one that sleeps: see `sweeper`, last steps.

A process that starts may know tasks that nobody knew: jobs that were put aside for it come back
in the first round, which does not dawdle. While a deployment goes on, older processes may still put
some aside, in tenants that sleep here: so each round takes twice as long as the one before, and in
the end as long as the time between two retentions. Nothing waits much longer than this process
has been there.

What comes back can be met once more by somebody who does not know it. So its tenant gets a
worker here, which brings it back and claims it at once, and the next round is soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from freehold.errors import FreeholdError
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.telemetry import Telemetry, log
from freehold.worker.sweeper import BATCH, LANES, RETENTION_SECONDS, SILENT_SECONDS, notify_promoted

#: Between two tenants, at least.
_APART_SECONDS = 0.02
#: The second round; and how long a host without tenants waits for the first of them.
_ROUND_SECONDS = 5.0


class TenantMaintenance:
    """One per host. What is broken is left to whoever looks at tenants."""

    def __init__(
        self,
        databases: Callable[[], dict[str, Callable[[], Database]]],
        tasks: Iterable[str],
        history_days: float,
        telemetry: Telemetry,
        want: Callable[[str], None],
    ) -> None:
        """``databases``: of each tenant. ``want``: a worker for it."""
        self._databases = databases
        self._want = want
        self._tasks = sorted(tasks)
        self._history_days = history_days
        self._telemetry = telemetry

    async def run(self) -> None:
        round_seconds = 0.0
        while True:
            databases, has_helped = self._databases(), False
            for tenant, database in databases.items():
                has_helped |= await self.visit(tenant, database)
                await asyncio.sleep(max(_APART_SECONDS, round_seconds / len(databases)))
            if not databases:
                await asyncio.sleep(_ROUND_SECONDS)
                continue
            if has_helped:
                round_seconds = 0.0
            round_seconds = min(max(_ROUND_SECONDS, 2 * round_seconds), RETENTION_SECONDS)

    async def visit(self, tenant: str, database: Callable[[], Database]) -> bool:
        """Also when one works again: the next round may be an hour away. Whether jobs came back."""
        has_helped = False
        try:
            store = AsyncStore(database().async_session())
            if await store.unpark(self._tasks, BATCH):
                has_helped = True
                self._want(tenant)
            if await self._free_lanes(store):
                has_helped = True
                self._want(tenant)
            while await store.retain(self._history_days, BATCH):
                pass
            await store.forget_workers(SILENT_SECONDS)
        except FreeholdError as error:
            self._telemetry.count("store_errors", label="upkeep")
            log.debug("the upkeep of a tenant failed: %s", error)
        return has_helped

    async def _free_lanes(self, store: AsyncStore) -> bool:
        has_freed, after = False, ""
        while True:
            walk = await store.free_lanes(after, LANES)
            notify_promoted(walk, self._telemetry)
            has_freed |= bool(walk.freed)
            after = walk.reached
            if not after:
                return has_freed
