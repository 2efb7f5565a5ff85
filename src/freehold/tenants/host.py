"""One process for many tenants: a worker for each tenant that has work, none for the others.

    directory --tenants-----------------> WakeSchedule --wake, end--> TenantWorkers
    shards ----activity, notifications---^                              SharedSlots, by weight
                                                                        SharedRenewalThread

A check of a shard costs one statement, however many idle tenants it holds. A broken tenant is
marked as degraded, not served, and checked again later; the other tenants are not affected.
Signals, drain and exit codes are those of a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections import ChainMap
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from freehold.errors import (
    BadSettings,
    FreeholdError,
    StoreDenied,
    StoreError,
    StoreUnavailable,
)
from freehold.exit_codes import EXIT_CRASHED, EXIT_DONE, EXIT_RECYCLE
from freehold.model.limit import ALL_QUEUES
from freehold.model.plural import count
from freehold.model.tenant import Tenant
from freehold.store import notifications
from freehold.store.database import Database
from freehold.store.shard import Shard, TenantActivity
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, fields, log, running_tenant
from freehold.tenants.host_registration import HostRegistration
from freehold.tenants.maintenance import TenantMaintenance
from freehold.tenants.served_tenants import TenantSource
from freehold.tenants.shared_renewal_thread import SharedRenewalThread
from freehold.tenants.shared_slots import SharedSlots
from freehold.tenants.tenant_worker import ForwardingTelemetry, SharedThreads, TenantWorker
from freehold.tenants.wake_schedule import WakeSchedule
from freehold.worker.config import WorkerSettings
from freehold.worker.held_leases import HeldLease
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.metrics_server import serve_metrics
from freehold.worker.parts import PartGroup
from freehold.worker.process_signals import stop_signals
from freehold.worker.worker import Worker, new_owner

#: How often the directory is read.
DIRECTORY_SECONDS = 5.0
#: While notifications arrive, a check only finds jobs that became due and lost notifications.
LISTENING_CHECK_SECONDS = 1.0
#: The timeout of a check.
CHECK_SECONDS_LIMIT = 30.0
#: How many tenants have a worker at once, unless twice the slots is more. At most as many tenants
#: as there are slots run a job, so some of the others can always be put to sleep.
AWAKE_TENANTS_LIMIT = 100
_SCHEDULE_SECONDS = 0.25
#: Between two checks that notifications request.
_CHECK_GAP_SECONDS = 0.01
_ERROR_SECONDS = 2.0


class TenantHost:
    """Runs jobs of many tenants until it drains. Built on the event loop that it runs on."""

    def __init__(
        self,
        directory: TenantSource,
        tasks: Registry,
        settings: WorkerSettings,
        *,
        telemetry: Telemetry | None = None,
        chance: Callable[[], float] = random.random,
        threads: SharedThreads | None = None,
        renewal_thread: SharedRenewalThread | None = None,
        name_worker: Callable[[], str] = new_owner,
        registration: HostRegistration | None = None,
        prepare: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """``registration`` also names the workers; ``prepare`` runs before each of them."""
        self._directory = directory
        self._tasks = tasks
        self._settings = settings
        self._chance = chance
        self.telemetry = telemetry or Telemetry()
        self._threads = threads or SharedThreads()
        self._renewal_thread = renewal_thread or SharedRenewalThread()
        self._name_worker = name_worker if registration is None else registration.name_worker
        self.workers: dict[str, TenantWorker] = {}
        self._worker_tasks: set[asyncio.Task[None]] = set()
        self._attempts: ChainMap[asyncio.Task[None], HeldLease] = ChainMap()
        self._shards: dict[str, Shard | None] = {}
        self._check_requests: dict[str, asyncio.Event] = {}
        self._registration = registration
        self._prepare = prepare
        self._parts = PartGroup(on_crash=self.stop_now)
        self._draining = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_stuck = False
        loop, concurrency = asyncio.get_running_loop(), settings.concurrency
        self._watchdog = LoopWatchdog(self._attempts, self.telemetry, loop.time)
        self.slots = SharedSlots(concurrency, loop.time, loop.call_soon)
        self.slots.show_in(self.telemetry)
        self.schedule = WakeSchedule(max(AWAKE_TENANTS_LIMIT, 2 * concurrency), loop.time)
        self._maintenance = TenantMaintenance(
            self._open_databases,
            tasks,
            settings.history_days,
            settings.audit_days,
            self.telemetry,
            self._request_worker,
        )

    # -- life cycle --------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until drained. Returns the exit code."""
        try:
            self.schedule.update(await self._directory.tenants())
        except StoreDenied:
            raise
        except StoreUnavailable as error:  # the directory is read again soon
            log.debug("the directory of tenants is not available yet: %s", error)
        log.info(
            "host starts: %s, %s, %s, %s",
            self._settings.shown_queues,
            count(self._settings.concurrency, "slot"),
            count(len(self._tasks.names), "task"),
            count(len(self.schedule.entries), "tenant"),
        )
        signals = stop_signals(self.drain, self.stop_now, self.drain_if_idle)
        own = signals if self._settings.handle_signals else contextlib.nullcontext()
        with own, serve_metrics(self.telemetry, self._settings):
            self._renewal_thread.start()
            try:
                return await self._run_parts()
            finally:
                await self._close()
                log.info("host has ended")

    async def _run_parts(self) -> int:
        parts = self._parts
        parts.start("directory", self._poll_directory())
        parts.start("schedule", self._schedule_workers())
        parts.start("maintenance", self._maintenance.run())
        parts.start("watchdog tick", self._watchdog.tick())
        parts.start("watchdog", self._renewal_thread.run(self._watchdog.watch))
        self._open_shards()
        if (own := self._registration) is not None:
            heartbeats = own.run(self.slots, self._draining.is_set, self.telemetry)
            parts.start("registration", heartbeats)
            parts.start("manager link", self._drain_without_manager(own))
        try:
            await self._draining.wait()
            await self._wait_for_workers()
        except asyncio.CancelledError:
            self.stop_now()  # like a second signal: nothing stays leased
            await self._wait_for_workers()
            raise
        finally:
            await parts.stop()
        if parts.has_crashed:
            return EXIT_CRASHED
        return EXIT_RECYCLE if self._is_stuck else EXIT_DONE

    async def _drain_without_manager(self, registration: HostRegistration) -> None:
        await registration.until_gone()
        self.drain()

    async def _close(self) -> None:
        if self._registration is not None:
            await self._registration.remove()
        for shard in self._shards.values():
            if shard is not None:
                await self._renewal_thread.run(shard.aclose)
                await shard.aclose()
        await self._renewal_thread.stop()
        self._threads.end()

    # -- drain -------------------------------------------------------------------------------

    def drain(self) -> None:
        """Stop claiming, and end when all jobs have ended."""
        if not self._draining.is_set():
            log.info("host %s", self._settings.drain_text(len(self._attempts)))
            self._draining.set()
        for each in self.workers.values():
            each.worker.drain()

    def drain_if_idle(self) -> None:
        """The manager has too many hosts: drain, unless this one holds leases."""
        if not self.slots.use.held:
            self.drain()

    def stop_now(self) -> None:
        """End the grace period now."""
        self.drain()
        for each in self.workers.values():
            each.worker.stop_now()

    async def _wait_for_workers(self) -> None:
        while self._worker_tasks:
            await asyncio.wait(self._worker_tasks)

    # -- the directory and the shards --------------------------------------------------------

    async def _poll_directory(self) -> None:
        part = self.telemetry.store_health.part("directory")
        wait_seconds = DIRECTORY_SECONDS
        while True:
            await part.wait(wait_seconds)
            try:
                tenants = await self._directory.tenants()
            except StoreError as error:
                self.telemetry.count("store_errors", label="directory")
                wait_seconds = part.failed(error, DIRECTORY_SECONDS)
                continue
            part.works()
            wait_seconds = DIRECTORY_SECONDS
            self.schedule.update(tenants)
            for worker in self.workers.values():
                if worker.tenant.name in self.schedule:
                    tenant = self.schedule[worker.tenant.name].tenant
                    self.slots.set_share(worker.slots, tenant.weight, tenant.max_slots)
            self._open_shards()
            self._changed.set()

    def _open_shards(self) -> None:
        named = {entry.tenant.shard for entry in self.schedule.entries}
        for name in sorted(named - self._shards.keys()):
            try:
                self._shards[name] = shard = self._directory.shard(name)
                shard.share_connections()
            except BadSettings as error:  # logged once: it cannot change while this process runs
                log.error("tenants of shard %s are not served here: %s", name, error)
                self._shards[name] = None
                continue
            self._check_requests[name] = asyncio.Event()
            self._parts.start(f"checks of shard {name}", self._watch_shard(name, shard))
            self._parts.start(f"listener of shard {name}", self._listen(name, shard))

    async def _listen(self, name: str, shard: Shard) -> None:
        def on_notification(tenant: str, topic: str | None) -> None:
            if topic and self._is_for_us(topic):
                self._request_worker(tenant)
            elif topic == "" and tenant not in self.workers:
                self._check_requests[name].set()  # something changed there: a check shows what

        await self._renewal_thread.listen(
            name, shard, lambda: self._tenants_of(name), on_notification
        )

    def _is_for_us(self, topic: str) -> bool:
        queue, served = notifications.queue_of(topic), self._settings.queues
        return queue is not None and (ALL_QUEUES in served or queue in served)

    def _tenants_of(self, shard: str) -> list[str]:
        """Called in the renewal thread."""
        return [entry.tenant.name for entry in self.schedule.entries if entry.tenant.shard == shard]

    # -- checks ------------------------------------------------------------------------------

    async def _watch_shard(self, name: str, shard: Shard) -> None:
        requested = self._check_requests[name]
        part = self.telemetry.store_health.part(f"checks of shard {name}")
        while True:
            requested.clear()
            try:
                wait_seconds = await self._check_shard(name, shard)
            except (StoreError, TimeoutError) as error:
                self.telemetry.count("store_errors", label="host")
                if isinstance(error, TimeoutError):
                    error = StoreUnavailable(f"no result within {CHECK_SECONDS_LIMIT:g} s")
                await part.wait(part.failed(error, _ERROR_SECONDS))
                continue
            part.works()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await requested.wait()
                    await asyncio.sleep(_CHECK_GAP_SECONDS)

    async def _check_shard(self, name: str, shard: Shard) -> float:
        """Check all tenants that may have work. Returns the seconds until the next check."""
        names = self.schedule.due_for_check(name)
        async with asyncio.timeout(CHECK_SECONDS_LIMIT):
            found = await shard.tenants_with_work(names) if names else []
        for activity in found:
            self._record(activity)
        self._changed.set()
        is_listening = self._renewal_thread.is_listening(name)
        return LISTENING_CHECK_SECONDS if is_listening else self._settings.poll_interval_ms / 1000.0

    def _record(self, activity: TenantActivity) -> None:
        name = activity.tenant
        if activity.error is not None:
            self._degrade(name, activity.error)
        elif self.schedule.record_check(activity):
            log.info("tenant %s works again", name, extra=fields(tenant=name))
            self._write_directory(name, self._directory.heal(name))
            if shard := self._shards.get(self.schedule[name].tenant.shard):
                visit = self._maintenance.visit(name, partial(shard.open, name))
                self._parts.start("maintenance of a recovered tenant", visit)
        worker = self.workers.get(name)
        if worker is not None and activity.has_work and worker.activity.is_idle:
            worker.worker.sweep()  # a job became due, or a notification was lost

    def _degrade(self, tenant: str, error: str) -> None:
        """Mark a broken tenant, log it once, and do not serve it for a while."""
        if self.schedule.record_error(tenant, error):
            log.error(
                "tenant %s is degraded and not served for now: %s",
                tenant,
                error,
                extra=fields(tenant=tenant),
            )
            self._write_directory(tenant, self._directory.degrade(tenant, error))

    def _write_directory(self, tenant: str, write: Coroutine[Any, Any, None]) -> None:
        """The directory may be unreachable; the next change of the tenant writes it again."""

        async def try_write() -> None:
            try:
                await write
            except FreeholdError as error:
                log.warning(
                    "cannot write the state of tenant %s into the directory: %s",
                    tenant,
                    error,
                    extra=fields(tenant=tenant),
                )

        self._parts.start("directory writer", try_write())

    def _open_databases(self) -> dict[str, Callable[[], Database]]:
        """Opens the databases of all tenants that work, for their maintenance."""
        return {
            entry.tenant.name: partial(shard.open, entry.tenant.name)
            for entry in self.schedule.entries
            if entry.error is None and (shard := self._shards.get(entry.tenant.shard))
        }

    def _request_worker(self, tenant: str) -> None:
        self.schedule.request_worker(tenant)
        self._changed.set()

    # -- workers -----------------------------------------------------------------------------

    async def _schedule_workers(self) -> None:
        while not self._draining.is_set():
            self._changed.clear()
            self.slots.end_stalled_grants()
            for name in self.schedule.to_end(lambda name: self.workers[name].activity):
                self.workers[name].worker.drain()
            for tenant in self.schedule.wake():
                self._wake(tenant)
            if self._settings.until_idle and self._is_idle:
                self.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SCHEDULE_SECONDS):
                    await self._changed.wait()

    @property
    def _is_idle(self) -> bool:
        all_idle = all(worker.activity.is_idle for worker in self.workers.values())
        return all_idle and self.schedule.is_quiet

    def _wake(self, tenant: Tenant) -> None:
        shard = self._shards.get(tenant.shard)
        try:
            if shard is None:
                raise BadSettings(f"its shard {tenant.shard} is not configured here")
            database = shard.open(tenant.name)
        except FreeholdError as error:
            self.schedule.worker_ended(tenant.name)
            self._degrade(tenant.name, str(error))
            return
        slots = self.slots.join(tenant.name, tenant.weight, tenant.max_slots)
        settings = replace(
            self._settings,
            concurrency=slots.count,
            until_idle=False,
            metrics_port=None,
            managed_in=None,  # the slot of the process is the host's
            slot_file=None,
        )
        context = contextvars.copy_context()  # inherited by all tasks of the worker
        context.run(running_tenant.set, tenant.name)
        worker = context.run(
            Worker,
            database,
            self._tasks,
            settings,
            telemetry=ForwardingTelemetry(self.telemetry),
            owner=self._name_worker(),
            chance=self._chance,
            threads=self._threads,
            slots=slots,
            is_hosted=True,
            tenant=tenant.name,
            start_renewal=self._renewal_thread.start_renewal(tenant.shard, tenant.name),
        )
        tenant_worker = self.workers[tenant.name] = TenantWorker(tenant, worker, slots)
        self._attempts.maps.append(worker.attempts)
        task = asyncio.create_task(
            self._run_worker(tenant_worker),
            name=f"worker of tenant {tenant.name}",
            context=context,
        )
        self._worker_tasks.add(task)
        task.add_done_callback(self._worker_tasks.discard)

    async def _run_worker(self, worker: TenantWorker) -> None:
        name, failure = worker.tenant.name, None
        try:
            if self._prepare is not None:
                await self._prepare(name)
            code = await worker.worker.run()
            if code == EXIT_CRASHED:
                failure = "its worker crashed: see the log"
            elif code == EXIT_RECYCLE:
                self._is_stuck = True
                self.drain()
        except Exception as error:
            log.exception("the worker of tenant %s failed", name, extra=fields(tenant=name))
            failure = str(error) if isinstance(error, FreeholdError) else type(error).__name__
        finally:
            self._remove_worker(worker)
        if failure is not None:
            self._degrade(name, failure)

    def _remove_worker(self, worker: TenantWorker) -> None:
        worker.slots.leave()
        del self.workers[worker.tenant.name]
        self._attempts.maps[:] = [each.worker.attempts for each in self.workers.values()]
        self.schedule.worker_ended(worker.tenant.name)
        self._changed.set()
