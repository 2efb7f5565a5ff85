"""One process for many tenants: a worker for each that has something to do, none for the others.

    directory --tenants------> roster --who wakes, who goes--> lodgers (a worker each)
    places ----awake, hints----^                                 slots: capacity, by weight
                                                                 keepers: one thread for all

A look costs one statement, however many tenants sleep in a place. A tenant that is broken is
marked, left alone and looked at again; the others go on. Signals, drain and exit codes are
those of a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import ChainMap
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from freehold.errors import BadSettings, FreeholdError, StoreError, StoreUnavailable
from freehold.exit_codes import EXIT_CRASHED, EXIT_DONE, EXIT_RECYCLE
from freehold.model.tenant import Tenant
from freehold.store import notifications
from freehold.store.database import Database
from freehold.store.shard import Shard, TenantActivity
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, fields, log
from freehold.tenants.maintenance import TenantMaintenance
from freehold.tenants.shared_renewal_thread import SharedRenewalThread
from freehold.tenants.shared_slots import SharedSlots
from freehold.tenants.tenant_source import TenantSource
from freehold.tenants.tenant_worker import ForwardingTelemetry, SharedThreads, TenantWorker
from freehold.tenants.wake_schedule import WakeSchedule
from freehold.worker.config import WorkerSettings
from freehold.worker.held_leases import HeldLease
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.metrics_server import monitored
from freehold.worker.process_signals import stop_signals
from freehold.worker.worker import Worker, new_owner

#: How often the directory is read.
DIRECTORY_SECONDS = 5.0
#: Where hints arrive, a look finds only what became due, and what was lost.
LISTENING_CHECK_SECONDS = 1.0
#: A look that has no answer by then is given up.
CHECK_SECONDS_LIMIT = 30.0
#: So many tenants are awake at a time, or twice as many as there are slots: those that run
#: something are at most as many as the slots, so that there are always some that can go.
AWAKE_TENANTS_LIMIT = 100
_ORDER_SECONDS = 0.25
#: Looks that somebody asks for keep this distance.
_APART_SECONDS = 0.01
_ERROR_SECONDS = 2.0


class TenantHost:
    """Runs jobs of many tenants until it is told to drain."""

    def __init__(
        self,
        directory: TenantSource,
        tasks: Registry,
        settings: WorkerSettings,
        *,
        telemetry: Telemetry | None = None,
        chance: Callable[[], float] = random.random,
        threads: SharedThreads | None = None,
        keepers: SharedRenewalThread | None = None,
        name_worker: Callable[[], str] = new_owner,
    ) -> None:
        self._directory = directory
        self._tasks = tasks
        self._settings = settings
        self._chance = chance
        self.telemetry = telemetry or Telemetry()
        self._threads = threads or SharedThreads()
        self._keepers = keepers or SharedRenewalThread()
        self._name_worker = name_worker
        self._ours = {notifications.queue_ready(queue) for queue in settings.queues}
        self.lodgers: dict[str, TenantWorker] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._attempts: ChainMap[asyncio.Task[None], HeldLease] = ChainMap()
        self._places: dict[str, Shard | None] = {}
        self._looks: dict[str, asyncio.Event] = {}
        self._parts: set[asyncio.Task[Any]] = set()
        self._is_stuck = self._has_crashed = False

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> int:
        """Until drained. Answers the exit code."""
        self._loop = asyncio.get_running_loop()
        self._draining = asyncio.Event()
        self._change = asyncio.Event()
        slots = self._settings.concurrency
        self.capacity = capacity = SharedSlots(slots, self._loop.time, self._loop.call_soon)
        self.roster = WakeSchedule(max(AWAKE_TENANTS_LIMIT, 2 * slots), self._loop.time)
        self.telemetry.watch("slots", lambda: capacity.slots)
        self.telemetry.watch("slots_running", lambda: capacity.running)
        self.telemetry.watch("slots_waiting", lambda: capacity.in_hand - capacity.running)
        with contextlib.suppress(StoreUnavailable):  # it is read again
            self.roster.update(await self._directory.tenants())
        log.info(
            "host starts: queues %s, %d slots, %d tasks, %d tenants",
            ", ".join(self._settings.queues),
            slots,
            len(self._tasks.names),
            len(self.roster.lines),
        )
        with stop_signals(self.drain, self.hurry), monitored(self.telemetry, self._settings):
            self._keepers.start()
            try:
                return await self._live()
            finally:
                await self._close()
                log.info("host has ended")

    async def _live(self) -> int:
        watch = LoopWatchdog(self._attempts, self.telemetry, self._loop.time)
        self._begin("directory", self._follow_directory())
        self._begin("order", self._keep_order())
        self._upkeep = self._new_upkeep()
        self._begin("upkeep", self._upkeep.run())
        self._begin("watch", watch.beat())
        self._begin("look", self._keepers.run(watch.look))
        self._open_places()
        try:
            await self._draining.wait()
            await self._until_gone()
        except asyncio.CancelledError:
            # Whoever cancels the host gets what a second signal gets: nothing stays leased.
            self.hurry()
            await self._until_gone()
            raise
        finally:
            for part in self._parts:
                part.cancel()
            await asyncio.gather(*self._parts, return_exceptions=True)
        if self._has_crashed:
            return EXIT_CRASHED
        return EXIT_RECYCLE if self._is_stuck else EXIT_DONE

    def _begin(self, name: str, life: Coroutine[Any, Any, Any]) -> None:
        """A part that crashes ends the host, loudly."""
        part = asyncio.create_task(life, name=name)
        self._parts.add(part)
        part.add_done_callback(self._part_ended)

    def _part_ended(self, part: asyncio.Task[Any]) -> None:
        self._parts.discard(part)
        if not part.cancelled() and (error := part.exception()) is not None:
            log.error("the %s crashed: %r", part.get_name(), error, exc_info=error)
            self._has_crashed = True
            self.hurry()

    async def _close(self) -> None:
        for place in self._places.values():
            if place is not None:
                await self._keepers.run(place.aclose)
                await place.aclose()
        await self._keepers.stop()
        self._threads.end()

    # -- drain -------------------------------------------------------------------------------

    def drain(self) -> None:
        """Stop claiming and end when everything has ended."""
        if not self._draining.is_set():
            log.info("host drains: %d tenants are awake", len(self.lodgers))
            self._draining.set()
        for lodger in self.lodgers.values():
            lodger.drain()

    def hurry(self) -> None:
        """The grace period ends now."""
        self.drain()
        for lodger in self.lodgers.values():
            lodger.hurry()

    async def _until_gone(self) -> None:
        while self._lives:
            await asyncio.wait(self._lives)

    # -- who there is ------------------------------------------------------------------------

    async def _follow_directory(self) -> None:
        while True:
            await asyncio.sleep(DIRECTORY_SECONDS)
            try:
                tenants = await self._directory.tenants()
            except StoreError as error:
                self.telemetry.count("store_errors", label="directory")
                log.warning("the directory of tenants cannot be read, trying again: %s", error)
                continue
            self.roster.update(tenants)
            for lodger in self.lodgers.values():
                if lodger.tenant.name in self.roster:
                    tenant = self.roster[lodger.tenant.name].tenant
                    self.capacity.change(lodger.share, tenant.weight, tenant.max_slots)
            self._open_places()
            self._change.set()

    def _open_places(self) -> None:
        for name in sorted({line.tenant.place for line in self.roster.lines} - self._places.keys()):
            try:
                self._places[name] = place = self._directory.place(name)
                place.use_few()
            except BadSettings as error:  # said once: it will not change while this process runs
                log.error("tenants of place %s are not served here: %s", name, error)
                self._places[name] = None
                continue
            self._looks[name] = asyncio.Event()
            self._begin(f"looks at {name}", self._follow_place(name, place))
            self._begin(f"listener of {name}", self._listen(name, place))

    async def _listen(self, name: str, place: Shard) -> None:
        def told(tenant: str, hint: str | None) -> None:
            if hint in self._ours:
                self.roster.want(tenant)
                self._change.set()
            elif hint == "" and tenant not in self.lodgers:
                self._looks[name].set()  # something has changed there: a look shows what

        await self._keepers.listen(name, place, lambda: self._names(name), told)

    def _names(self, place: str) -> list[str]:
        """In the keepers' thread."""
        return [line.tenant.name for line in self.roster.lines if line.tenant.place == place]

    # -- who has something to do -------------------------------------------------------------

    async def _follow_place(self, name: str, place: Shard) -> None:
        look = self._looks[name]
        while True:
            look.clear()
            wait = await self._look(name, place)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await look.wait()
                    await asyncio.sleep(_APART_SECONDS)

    async def _look(self, name: str, place: Shard) -> float:
        """At all that may have something to do; answers how long until the next look."""
        names = self.roster.to_look_at(name)
        try:
            async with asyncio.timeout(CHECK_SECONDS_LIMIT):
                seen = await place.awake(names) if names else []
        except (StoreError, TimeoutError) as error:
            self.telemetry.count("store_errors", label="host")
            log.warning(
                "looking at the tenants of %s failed, trying again: %s",
                place.shown,
                str(error) or "no answer",
            )
            return _ERROR_SECONDS
        for each in seen:
            self._saw(each)
        self._change.set()
        is_listening = self._keepers.is_listening(name)
        return LISTENING_CHECK_SECONDS if is_listening else self._settings.poll_seconds

    def _saw(self, seen: TenantActivity) -> None:
        if seen.trouble is not None:
            self._trouble(seen.tenant, seen.trouble)
        elif self.roster.looked(seen):
            log.info("tenant %s works again", seen.tenant, extra=fields(tenant=seen.tenant))
            self._tell(seen.tenant, self._directory.heal(seen.tenant))
            if place := self._places.get(self.roster[seen.tenant].tenant.place):
                visit = self._upkeep.visit(seen.tenant, partial(place.open, seen.tenant))
                self._begin("upkeep of one", visit)
        lodger = self.lodgers.get(seen.tenant)
        if lodger is not None and seen.has_work and lodger.doing.is_idle:
            lodger.sweep()  # something became due, or was lost

    def _trouble(self, tenant: str, why: str) -> None:
        """Marked and said once; the others go on."""
        if self.roster.trouble(tenant, why):
            log.error(
                "tenant %s is degraded and left alone for now: %s",
                tenant,
                why,
                extra=fields(tenant=tenant),
            )
            self._tell(tenant, self._directory.degrade(tenant, why))

    def _tell(self, tenant: str, words: Coroutine[Any, Any, None]) -> None:
        """The directory, which may be away: it is told again with the next change."""

        async def tell() -> None:
            try:
                await words
            except FreeholdError as error:
                log.warning(
                    "the directory was not told about tenant %s: %s",
                    tenant,
                    error,
                    extra=fields(tenant=tenant),
                )

        self._begin("telling", tell())

    def _new_upkeep(self) -> TenantMaintenance:
        def databases() -> dict[str, Callable[[], Database]]:
            return {
                line.tenant.name: partial(place.open, line.tenant.name)
                for line in self.roster.lines
                if line.trouble is None and (place := self._places.get(line.tenant.place))
            }

        def want(tenant: str) -> None:
            self.roster.want(tenant)
            self._change.set()

        return TenantMaintenance(
            databases, self._tasks.names, self._settings.history_days, self.telemetry, want
        )

    # -- who comes and goes ------------------------------------------------------------------

    async def _keep_order(self) -> None:
        while not self._draining.is_set():
            self._change.clear()
            for name in self.roster.go(lambda name: self.lodgers[name].doing):
                self.lodgers[name].drain()
            for tenant in self.roster.wake():
                self._wake(tenant)
            if self._settings.until_idle and self._is_idle:
                self.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ORDER_SECONDS):
                    await self._change.wait()

    @property
    def _is_idle(self) -> bool:
        all_idle = all(lodger.doing.is_idle for lodger in self.lodgers.values())
        return all_idle and self.roster.is_quiet

    def _wake(self, tenant: Tenant) -> None:
        place = self._places.get(tenant.place)
        try:
            if place is None:
                raise BadSettings(f"its place {tenant.place} is not known here")
            database = place.open(tenant.name)
        except FreeholdError as error:
            self.roster.gone(tenant.name)
            self._trouble(tenant.name, str(error))
            return
        share = self.capacity.join(tenant.name, tenant.weight, tenant.max_slots)
        settings = replace(
            self._settings, concurrency=share.count, until_idle=False, metrics_port=None
        )
        worker = Worker(
            database,
            self._tasks,
            settings,
            telemetry=ForwardingTelemetry(self.telemetry),
            owner=self._name_worker(),
            chance=self._chance,
            threads=self._threads,
            slots=share,
            is_hosted=True,
            tenant=tenant.name,
            keep=self._keepers.keep(tenant.place, tenant.name),
        )
        lodger = self.lodgers[tenant.name] = TenantWorker(tenant, worker, share)
        self._attempts.maps.append(worker.attempts)
        life = asyncio.create_task(self._lodge(lodger), name=f"worker of {tenant.name}")
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _lodge(self, lodger: TenantWorker) -> None:
        name, why = lodger.tenant.name, None
        try:
            code = await lodger.live()
            if code == EXIT_CRASHED:
                why = "its worker crashed: see the log"
            elif code == EXIT_RECYCLE:
                self._is_stuck = True
                self.drain()
        except Exception as error:
            log.exception("the worker of tenant %s broke", name, extra=fields(tenant=name))
            why = str(error) if isinstance(error, FreeholdError) else type(error).__name__
        finally:
            self._leave(lodger)
        if why is not None:
            self._trouble(name, why)

    def _leave(self, lodger: TenantWorker) -> None:
        lodger.share.leave()
        del self.lodgers[lodger.tenant.name]
        self._attempts.maps[:] = [each.worker.attempts for each in self.lodgers.values()]
        self.roster.gone(lodger.tenant.name)
        self._change.set()
