"""Maintenance that every tenant needs from time to time, also without a worker (see `sweeper`).

A new process may have tasks that no process had before: the jobs that were parked for them become
ready again in the first round, which runs without pauses. During a deployment, older processes may
park further jobs of tenants that have no worker here. So each round takes twice as long as the one
before, up to the interval of retention, and no job stays parked much longer than this process has
been running.

An unparked job can be parked again by an older process. So its tenant gets a worker here, which
unparks and claims it at once, and the next round comes soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from freehold.errors import FreeholdError, StoreUnavailable
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.store_health import GrowingWait
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, log
from freehold.worker.misfits import MisfitCheck
from freehold.worker.sweeper import (
    AUDIT_BATCH,
    BATCH,
    LANES,
    RETENTION_SECONDS,
    SILENT_SECONDS,
    log_promoted_lanes,
)

#: The least pause between two tenants.
_GAP_SECONDS = 0.02
#: The duration of the second round, and the wait of a host without tenants.
_ROUND_SECONDS = 5.0
_ERROR_SECONDS = 1.0


class TenantMaintenance:
    """One per host. Errors are ignored here: the checks of the host degrade broken tenants."""

    def __init__(
        self,
        databases: Callable[[], dict[str, Callable[[], Database]]],
        tasks: Registry,
        history_days: float,
        audit_days: float,
        telemetry: Telemetry,
        request_worker: Callable[[str], None],
    ) -> None:
        """``databases`` opens the database of each tenant; ``request_worker`` wakes a tenant."""
        self._databases = databases
        self._request_worker = request_worker
        self._tasks, self._fits = tasks.names, tasks.fits
        self._history_days = history_days
        self._audit_days = audit_days
        self._telemetry = telemetry
        self._error_wait = GrowingWait()

    async def run(self) -> None:
        round_seconds = 0.0
        while True:
            databases, has_freed_jobs = self._databases(), False
            for tenant, database in databases.items():
                has_freed_jobs |= await self.visit(tenant, database)
                await asyncio.sleep(max(_GAP_SECONDS, round_seconds / len(databases)))
            if not databases:
                await asyncio.sleep(_ROUND_SECONDS)
                continue
            if has_freed_jobs:
                round_seconds = 0.0
            round_seconds = min(max(_ROUND_SECONDS, 2 * round_seconds), RETENTION_SECONDS)

    async def visit(self, tenant: str, database: Callable[[], Database]) -> bool:
        """Returns whether jobs became ready. Also called for a tenant that works again, because the
        next round may be an hour away."""
        has_freed_jobs = False
        try:
            store = AsyncStore(database().async_session())
            if await store.unpark(self._tasks, BATCH) + await self._unpark_misfits(store):
                has_freed_jobs = True
                self._request_worker(tenant)
            if await self._promote_lanes(store):
                has_freed_jobs = True
                self._request_worker(tenant)
            while await store.apply_retention(self._history_days, BATCH):
                pass
            await store.apply_audit_retention(self._audit_days, AUDIT_BATCH)
            await store.remove_silent_workers(SILENT_SECONDS)
            self._error_wait.reset()
        except FreeholdError as error:
            self._telemetry.count("store_errors", label="maintenance")
            log.debug("the maintenance of tenant %s failed: %s", tenant, error)
            if isinstance(error, StoreUnavailable):  # of the other tenants too, probably
                await asyncio.sleep(self._error_wait.next(_ERROR_SECONDS))
        return has_freed_jobs

    async def _unpark_misfits(self, store: AsyncStore) -> int:
        """The first batch with jobs that this code fits: a worker finds the others."""
        check, made_ready = MisfitCheck(self._tasks, self._fits), 0
        while not (made_ready or check.is_done):
            made_ready = await check.run_once(store, BATCH)
        return made_ready

    async def _promote_lanes(self, store: AsyncStore) -> bool:
        has_promoted, after = False, ""
        while True:
            scan = await store.promote_stalled_lanes(after, LANES)
            log_promoted_lanes(scan, self._telemetry)
            has_promoted |= bool(scan.freed)
            after = scan.reached
            if not after:
                return has_promoted
