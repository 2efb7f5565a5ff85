"""A worker: builds its parts and joins them. One process, one owner.

    claimer --attempts--> executor (slots, runner) --outcomes--> finisher
                             lease renewer (a thread): renews, marks running, reads requests
                             job log writer: writes what handlers log
                             flow folder: counts ends of members of flows, acts on the flows
                             sweeper: recovers, makes ready, and the other chores

A part that crashes stops the whole worker with an error. SIGTERM drains: no job is claimed,
unstarted jobs are given back, running jobs are stopped after the grace period.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import secrets
from collections.abc import Awaitable, Callable

from freehold.exit_codes import EXIT_CRASHED, EXIT_DONE, EXIT_RECYCLE
from freehold.model.plural import count
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.claimer import Claimer, ServedQueues
from freehold.worker.config import WorkerSettings
from freehold.worker.drain import Drain
from freehold.worker.ended_calls import EndedCalls
from freehold.worker.execution.context import Contexts
from freehold.worker.execution.handler_store import WorkerStore
from freehold.worker.execution.process_pool import ProcessPool
from freehold.worker.execution.runner import Runner
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.executor import Executor
from freehold.worker.finisher import Finisher
from freehold.worker.heartbeat import HeartbeatSchedule, WorkerHeartbeat, deregister
from freehold.worker.held_leases import HeldLeases
from freehold.worker.job_log.writer import JobLogWriter
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.manager_link import ManagerLink
from freehold.worker.metrics_server import serve_metrics
from freehold.worker.parts import PartGroup
from freehold.worker.process_signals import stop_signals
from freehold.worker.renewal_thread import RenewalThread, StartRenewal
from freehold.worker.slots import Slots
from freehold.worker.sweeper import Sweeper
from freehold.worker.wakeups import NotificationRouter, Wakeups

_IDLE_CHECK_SECONDS = 0.02


def new_owner() -> str:
    """Short, because it is written with every claim; random, because it must never repeat."""
    return f"w{os.getpid():x}-{secrets.token_hex(4)}"


class Worker:
    """Runs jobs until it is drained. Built on the event loop that it runs on."""

    def __init__(
        self,
        database: Database,
        tasks: Registry,
        settings: WorkerSettings,
        *,
        telemetry: Telemetry | None = None,
        owner: str | None = None,
        chance: Callable[[], float] = random.random,
        threads: ThreadPool | None = None,
        start_renewal: StartRenewal = RenewalThread,
        slots: Slots | None = None,
        is_hosted: bool = False,
        tenant: str | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``is_hosted``: a TenantHost handles signals and watches the loop for all its workers.
        ``prepare`` is called before the first claim."""
        self.owner, loop = (owner := owner or new_owner()), asyncio.get_running_loop()
        self.telemetry = telemetry = telemetry or Telemetry()
        self.leases, self._wakeups = leases, wakeups = HeldLeases(), Wakeups()
        self._database, self._tasks, self._settings = database, tasks, settings
        self._is_hosted, self._tenant = is_hosted, tenant
        self._store = store = AsyncStore(database.async_session())
        self._drain, self._ended = drain, ended = Drain(), EndedCalls(tasks.extensions)
        self._parts = PartGroup(on_crash=drain.request_at_once)
        self._manager_link = link = ManagerLink.given(settings, owner)
        slots = slots or Slots(settings.concurrency, loop.time)
        slots.show_in(telemetry)
        heartbeat = WorkerHeartbeat(owner, settings, tasks, slots, drain, telemetry, link)
        schedule = HeartbeatSchedule(heartbeat.current)
        own_store = AsyncStore(database.async_session())  # the renewer has a loop of its own
        renewer = LeaseRenewer(own_store, owner, leases, schedule, telemetry, settings)

        self._threads = threads = threads or ThreadPool()
        self._processes = processes = ProcessPool(
            threads, tenant, settings.child_setup, settings.child_max_jobs, tasks
        )
        self._log_writer = log_writer = JobLogWriter(store, owner, telemetry)
        handler_store = WorkerStore(store, database, owner, leases, telemetry, chance, tasks)
        contexts = Contexts(log_writer, handler_store, loop.time, tenant)
        runner = Runner(tasks, threads, processes, contexts, drain, settings.misfit_seconds)
        self._finisher = finisher = Finisher(
            store, owner, leases, telemetry, wakeups, chance, ended
        )
        self._executor = executor = Executor(
            leases, slots, runner, log_writer, finisher, renewer, wakeups, drain
        )
        self.attempts = executor.attempts
        queues = ServedQueues(store, settings.queues, loop.time)
        known, limits = frozenset(tasks.names), tasks.limits
        self._claimer = Claimer(
            store, owner, telemetry, settings, known, limits, queues, executor, wakeups, prepare
        )
        self._sweeper = Sweeper(
            store, telemetry, settings, tasks, executor, wakeups, chance, ended, is_hosted=is_hosted
        )
        self._renewer, self._watchdog = renewer, LoopWatchdog(self.attempts, telemetry, loop.time)
        router = NotificationRouter(owner, queues.serves, renewer, wakeups)
        self._renewal = start_renewal(renewer, database, self._watchdog, router.route)

    # -- start and end -----------------------------------------------------------------------

    async def run(self) -> int:
        """Runs until drained. Returns the exit code."""
        if self._drain.requested.is_set():
            return EXIT_DONE
        self._log_start()
        signals = stop_signals(self.drain, self.stop_now, self.drain_if_idle)
        metrics = serve_metrics(self.telemetry, self._settings, self._tenant)
        has_signals = self._settings.handle_signals and not self._is_hosted
        with signals if has_signals else contextlib.nullcontext(), metrics:
            try:
                await self._run_parts()
            finally:
                await self._parts.stop()
                await self._renewal.stop()
                await deregister(self._store, self.owner)
                self._processes.close()
                self._threads.close()
                self._log("worker %s has ended", self.owner)
        if self._parts.has_crashed:
            return EXIT_CRASHED
        return EXIT_RECYCLE if self._drain.stuck_jobs else EXIT_DONE

    async def _run_parts(self) -> None:
        parts = self._parts
        parts.start_part("lease renewer", self._renewal)
        claiming = parts.start("claimer", self._claimer.run())
        parts.start("finisher", self._finisher.run())
        parts.start("flow folder", self._finisher.folder.run())
        parts.start("sweeper", self._sweeper.run())
        parts.start("job log writer", self._log_writer.run())
        if self._manager_link is not None:
            parts.start("manager link", self._drain_without_manager(self._manager_link))
        if not self._is_hosted:
            parts.start("loop watchdog", self._watchdog.tick())
        try:
            await self._until_drain_is_requested()
            await self._end_jobs(claiming)
        except asyncio.CancelledError:
            # Canceling the worker works like a second signal: no lease is left behind.
            self.stop_now()
            await self._end_jobs(claiming)
            raise

    async def _drain_without_manager(self, manager_link: ManagerLink) -> None:
        await manager_link.until_gone(self._renewer.wake)
        self.drain()

    async def _until_drain_is_requested(self) -> None:
        if not self._settings.until_idle:
            await self._drain.requested.wait()
            return
        requested = asyncio.create_task(self._drain.requested.wait())
        while not requested.done() and not self.is_idle:
            running = itertools.islice(self.attempts, 1)  # while one runs, no polling is needed
            seconds = None if self.attempts else _IDLE_CHECK_SECONDS
            await asyncio.wait(
                {requested, *running}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        requested.cancel()

    async def _end_jobs(self, claiming: asyncio.Task[None]) -> None:
        """Jobs of a claim that is still under way are given back (see `Executor.hold`)."""
        self.drain()
        seconds = self._settings.lease_timeout_seconds
        self._log("worker %s %s", self.owner, self._settings.drain_text(len(self.attempts)))
        self._renewer.wake()
        self._claimer.stop()
        self._executor.give_back_waiting()
        await asyncio.wait({claiming}, timeout=seconds)
        claiming.cancel()  # leases that it still got would not be renewed
        await self._executor.stop(self._settings.shutdown_grace_seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._finisher.flushed()
        except TimeoutError:
            text = "%s could not be written: the jobs are recovered when their leases expire"
            log.error(text, count(len(self.leases), "outcome"))
        if not self._parts.has_crashed:
            with contextlib.suppress(TimeoutError):  # what it has not counted is left to the sweeps
                async with asyncio.timeout(seconds):
                    await self._finisher.folder.flushed()
        await self._ended.flushed()

    def _log_start(self) -> None:
        self._log(
            "worker %s starts: %s, %s, %s, %s",
            self.owner,
            self._settings.shown_queues,
            count(self._settings.concurrency, "slot"),
            count(len(self._tasks.names), "task"),
            self._database.shown,
        )
        if unserved := ", ".join(self._settings.unserved(self._tasks.queues)):
            self._log("worker %s does not serve queues of its tasks: %s", self.owner, unserved)

    def _log(self, text: str, *values: object) -> None:
        """Starts and ends. Workers of a host start and end all the time, so at a lower level."""
        level = logging.DEBUG if self._is_hosted else logging.INFO
        tenant = {} if self._tenant is None else {"tenant": self._tenant}
        log.log(level, text, *values, extra=fields(worker=self.owner, **tenant))

    # -- for its process or host -------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """No lease is held, no job was found that could run, and no end of a member that this
        worker has written is to be folded."""
        return self._executor.is_idle and self._finisher.folder.is_idle

    def sweep(self) -> None:
        """Called by a host that has found work for the sweeper."""
        self._wakeups.sweep_unless_recent()

    def drain(self) -> None:
        """Stop claiming, and end when all running jobs have ended."""
        self._drain.requested.set()

    def stop_now(self) -> None:
        """Drain, and end the grace period now."""
        self._drain.request_at_once()

    def drain_if_idle(self) -> None:
        """The manager has too many workers: drain, unless this one holds leases."""
        if not len(self.leases) and not self.attempts:
            self.drain()
