"""A worker: builds and connects its parts. One process, one owner.

    claimer --attempts--> slots --leases--> runner --outcomes--> finisher
                             lease renewer (a thread): renews, marks running, reads requests
                             job log writer: writes what handlers log
                             sweeper: recovers, makes ready

A part that crashes stops the whole worker with an error. SIGTERM drains: no job is claimed,
unstarted jobs are given back, running jobs are stopped after the grace period.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import os
import random
import secrets
import socket
from collections.abc import Callable, Collection

from freehold.errors import StoreError
from freehold.exit_codes import EXIT_CRASHED, EXIT_DONE, EXIT_RECYCLE
from freehold.model.job import Attempt
from freehold.model.outcome import NEVER_STARTED, Outcome, OutcomeKind
from freehold.model.plural import count
from freehold.model.worker_info import Heartbeat, WorkerState
from freehold.store import notifications
from freehold.store.database import Database
from freehold.store.store import AsyncStore
from freehold.store.types import AttemptEnd
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, fields, log
from freehold.version import VERSION
from freehold.worker.claimer import Claimer
from freehold.worker.config import WorkerSettings
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Context
from freehold.worker.execution.fenced_transaction import FencedTransactions
from freehold.worker.execution.process_pool import ProcessPool
from freehold.worker.execution.runner import STUCK_SECONDS, Runner
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.finisher import Finisher
from freehold.worker.heartbeat import HeartbeatSchedule
from freehold.worker.held_leases import HeldLease, HeldLeases, StopReason
from freehold.worker.job_log.writer import JobLogWriter
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.loop_watchdog import LoopWatchdog
from freehold.worker.manager_link import ManagerLink
from freehold.worker.metrics_server import serve_metrics
from freehold.worker.process_signals import stop_signals
from freehold.worker.renewal_thread import RenewalHost, RenewalThread, StartRenewal
from freehold.worker.slots import LATE_SECONDS, Slots
from freehold.worker.sweeper import SWEEP_SECONDS, Sweeper

_IDLE_CHECK_SECONDS = 0.02
_DEREGISTER_SECONDS = 2.0


def new_owner() -> str:
    """Short, because it is written with every claim; random, because it must never repeat."""
    return f"w{os.getpid():x}-{secrets.token_hex(4)}"


class Worker:
    """Runs jobs until it is drained."""

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
    ) -> None:
        """``is_hosted``: a TenantHost handles signals and watches the loop for all its workers."""
        self._database = database
        self._tasks = tasks
        self._host = socket.gethostname()
        self._settings = settings
        self._chance = chance
        self.telemetry = telemetry or Telemetry()
        self.owner = owner or new_owner()
        self.leases = HeldLeases()
        self._threads = threads or ThreadPool()
        self._start_renewal = start_renewal
        self._shared_slots = slots
        self._is_hosted = is_hosted
        self._tenant = tenant
        self._processes = ProcessPool(self._threads, tenant, settings.child_setup)
        self._stuck: set[int] = set()
        self.attempts: dict[asyncio.Task[None], HeldLease] = {}
        self._listening = False
        self._late_check_scheduled = False

    # -- start and end -----------------------------------------------------------------------

    async def run(self) -> int:
        """Runs until drained. Returns the exit code."""
        self._loop = asyncio.get_running_loop()
        #: Every attempt starts with a copy, without context variables of other attempts.
        self._clean_context = contextvars.copy_context()
        self._draining = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._build(AsyncStore(self._database.async_session()))
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
        self._watchdog = LoopWatchdog(self.attempts, self.telemetry, self._loop.time)
        renewal = self._start_renewal(
            self._renewer, self._database, self._watchdog, self._on_notification
        )
        signals = stop_signals(self.drain, self.stop_now, self.drain_if_idle)
        metrics = serve_metrics(self.telemetry, self._settings, self._tenant)
        with contextlib.nullcontext() if self._is_hosted else signals, metrics:
            renewal.start()
            try:
                return await self._run_parts(renewal)
            finally:
                await renewal.stop()
                await self._deregister()
                self._processes.close()
                self._threads.close()
                self._log("worker %s has ended", self.owner)

    def _log(self, text: str, *values: object) -> None:
        """Starts and ends. Workers of a host start and end all the time, so at a lower level."""
        level = logging.DEBUG if self._is_hosted else logging.INFO
        tenant = {} if self._tenant is None else {"tenant": self._tenant}
        log.log(level, text, *values, extra=fields(worker=self.owner, **tenant))

    def _build(self, store: AsyncStore) -> None:
        settings = self._settings
        self._store = store
        self._manager_link: ManagerLink | None = None
        if settings.managed_in is not None and settings.slot_file is not None:
            self._manager_link = ManagerLink(settings.managed_in, settings.slot_file, self.owner)
        self._slots = slots = self._shared_slots or Slots(settings.concurrency, self._loop.time)
        self.telemetry.watch("slots", lambda: slots.count)
        self.telemetry.watch("slots_running", lambda: len(slots.running))
        self.telemetry.watch("slots_waiting", lambda: len(slots.waiting))
        self._renewer = LeaseRenewer(
            AsyncStore(self._database.async_session()),
            self.owner,
            self.leases,
            HeartbeatSchedule(self._heartbeat),
            self.telemetry,
            lease_seconds=settings.lease_timeout_seconds,
            request_poll_seconds=settings.request_poll_seconds,
        )
        wait_seconds = settings.misfit_seconds
        self._runner = Runner(
            self._tasks, self._threads, self._processes, self._on_stuck, self._context, wait_seconds
        )
        self._finisher = Finisher(store, self.owner, self.leases, self.telemetry, self._on_written)
        self._log_writer = JobLogWriter(store, self.owner, self.telemetry)
        self._transactions = FencedTransactions(
            self._database, self.owner, self.leases, self.telemetry, self._loop
        )
        known = self._known = tuple(self._tasks.names)
        self._claimer = Claimer(
            store,
            self.owner,
            self.telemetry,
            queues=settings.queues,
            tasks=frozenset(known),
            lease_seconds=settings.lease_timeout_seconds,
            poll_seconds=settings.poll_interval_ms / 1000.0,
            room=lambda: slots.grant(self._room()),
            starting_soon=slots.starting_soon,
            on_claimed=self._hold,
            claim_ended=slots.claim_ended,
            is_listening=lambda: self._listening,
            on_nothing=lambda: self._sweeper.wake_unless_recent(),
        )
        self._sweeper = Sweeper(
            store,
            self.telemetry,
            tasks=known,
            history_days=settings.history_days,
            chance=self._chance,
            room=self._room,
            on_ready=self._claimer.jobs_ready,
            is_watched=lambda: self._is_hosted and self.is_idle,
            fits=self._tasks.fits,
        )
        slots.attach(self._claimer.wake, self._start_waiting)

    def _heartbeat(self) -> Heartbeat:
        """Also called in the renewal thread."""
        state = WorkerState.DRAINING if self._draining.is_set() else WorkerState.WORKING
        total = self.telemetry.total
        return Heartbeat(
            owner=self.owner,
            host=self._host,
            pid=os.getpid(),
            version=VERSION,
            concurrency=self._settings.concurrency,
            queues=self._settings.queues,
            tasks=self._known,
            state=WorkerState.STUCK if self._stuck else state,
            running=len(self._slots.running),
            waiting=len(self._slots.waiting),
            finished=total("finished") - sum(total("finished", each) for each in NEVER_STARTED),
            manager=self._manager_link.manager if self._manager_link else None,
        )

    async def _deregister(self) -> None:
        with contextlib.suppress(StoreError, TimeoutError):  # if it fails, the heartbeat expires
            async with asyncio.timeout(_DEREGISTER_SECONDS):
                await self._store.remove_worker(self.owner)

    async def _run_parts(self, renewal: RenewalHost) -> int:
        """Starts the parts. If one crashes, the worker ends with an error."""
        claiming = asyncio.create_task(self._claimer.run(), name="claimer")
        parts = [
            asyncio.create_task(self._finisher.run(), name="finisher"),
            asyncio.create_task(self._sweeper.run(), name="sweeper"),
            asyncio.create_task(self._log_writer.run(), name="job log writer"),
            asyncio.create_task(renewal.crashed(), name="lease renewer"),
        ]
        if self._manager_link is not None:
            gone = self._manager_link.until_gone(self._renewer.wake)
            parts.append(asyncio.create_task(gone, name="manager link"))
        if not self._is_hosted:
            parts.append(asyncio.create_task(self._watchdog.tick(), name="loop watchdog"))
        draining = asyncio.create_task(self._until_drained(), name="drain")
        try:
            await asyncio.wait({claiming, draining, *parts}, return_when=asyncio.FIRST_COMPLETED)
            self.drain()
            await self._drain(claiming, at_once=bool(_crashes(*parts, claiming)))
            for part in (crashed := _crashes(*parts, claiming)):
                error = part.exception()
                log.error("the %s crashed: %r", part.get_name(), error, exc_info=error)
            if crashed:
                return EXIT_CRASHED
            return EXIT_RECYCLE if self._stuck else EXIT_DONE
        except asyncio.CancelledError:
            # Canceling the worker works like a second signal: no lease is left behind.
            self.drain()
            await self._drain(claiming, at_once=True)
            raise
        finally:
            for part in (*parts, draining, claiming):
                part.cancel()
            await asyncio.gather(*parts, draining, claiming, return_exceptions=True)

    async def _until_drained(self) -> None:
        if not self._settings.until_idle:
            await self._draining.wait()
            return
        draining = asyncio.create_task(self._draining.wait())
        while not self._draining.is_set() and not self.is_idle:
            running = itertools.islice(self.attempts, 1)  # while one runs, no polling is needed
            seconds = None if self.attempts else _IDLE_CHECK_SECONDS
            await asyncio.wait(
                {draining, *running}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        draining.cancel()

    @property
    def is_idle(self) -> bool:
        """No lease is held, and no job was found that could run."""
        has_leases = bool(self.attempts or len(self.leases))
        return not has_leases and self._sweeper.has_swept and self._claimer.has_found_nothing

    # -- the path of a job -------------------------------------------------------------------

    def _room(self) -> int:
        return 0 if self._finisher.is_full else self._slots.room()

    def _hold(self, attempts: list[Attempt], valid_until: float, limited: Collection[int]) -> None:
        now = self._loop.time()
        for attempt in attempts:
            lease = HeldLease(attempt, valid_until, now, is_limited=attempt.job_id in limited)
            self.leases.add(lease)
            self._slots.add(lease)
        self._renewer.on_claimed(now, valid_until)
        self._sweeper.wake_unless_recent(SWEEP_SECONDS)
        if self._draining.is_set():
            self._give_back(self._slots.give_back())
        else:
            self._start_waiting()
            self._schedule_late_check()

    def _start_waiting(self) -> None:
        while (lease := self._slots.next()) is not None:
            task = self._loop.create_task(
                self._run_attempt(lease), context=self._clean_context.copy()
            )
            self.attempts[task] = lease
            task.add_done_callback(self.attempts.pop)

    async def _run_attempt(self, lease: HeldLease) -> None:
        try:
            outcome = await self._runner.run(lease)
            try:
                if lease.log_buffer is not None:
                    await self._log_writer.flush_attempt(lease, lease.log_buffer)
            finally:
                self._end(lease, outcome)
        except Exception:  # a bug of ours, but the job must not hang because of it
            log.exception("job %d: an internal error after its attempt", lease.attempt.job_id)
        finally:
            self.leases.abandon(lease)
            self._slots.end(lease)
            if not self._draining.is_set():
                self._start_waiting()
            self._claimer.wake()

    def _context(self, lease: HeldLease) -> Context:
        lease.log_buffer = self._log_writer.new_buffer(lease)
        return Context(lease, self._loop.time, lease.log_buffer, self._transactions, self._tenant)

    def _end(self, lease: HeldLease, outcome: Outcome | None) -> None:
        if outcome is None:  # the lease is lost, or the handler's transaction finished the job
            self.leases.remove(lease)
            return
        request = outcomes.known_request(lease)
        self._finisher.submit(lease, AttemptEnd(lease.attempt, outcome, request, self._chance()))

    def _schedule_late_check(self) -> None:
        """Repeated for as long as jobs wait for a slot."""
        if self._slots.waiting and not self._late_check_scheduled:
            self._late_check_scheduled = True
            self._loop.call_later(LATE_SECONDS, self._give_back_late)

    def _give_back_late(self) -> None:
        self._late_check_scheduled = False
        if not self._draining.is_set():
            self._give_back(self._slots.give_back_late(), "all slots of its worker stayed busy")
            self._schedule_late_check()

    def _give_back(self, leases: list[HeldLease], reason: str = "its worker drains") -> None:
        for lease in leases:
            is_lost = lease.was_stopped_by(StopReason.LEASE_LOST)
            text = f"returned to the queue unstarted: {reason}"
            self._end(lease, None if is_lost else Outcome(kind=OutcomeKind.GIVE_BACK, reason=text))

    # -- notifications -----------------------------------------------------------------------

    def _on_written(self, has_scheduled: bool) -> None:
        self._claimer.wake()
        if has_scheduled:
            self._sweeper.wake()

    def _on_notification(self, payload: str | None) -> None:
        """Called in the renewal thread. "": notifications may have been missed; None: they stop."""
        self._listening = payload is not None
        if payload is None or self._loop.is_closed():
            return
        if payload in ("", notifications.stop_requested(self.owner)):
            self._renewer.wake(has_requests=True)
        if payload in ("", notifications.SCHEDULED):
            self._loop.call_soon_threadsafe(self._sweeper.wake)
        if self._claimer.queues.is_ours(payload) or (payload == "" and self._claimer.is_idle):
            self._loop.call_soon_threadsafe(self._claimer.jobs_ready, payload)

    def _on_stuck(self, lease: HeldLease) -> None:
        attempt = lease.attempt
        if attempt.job_id not in self._stuck:
            self._stuck.add(attempt.job_id)
            log.error(
                "job %d of %s did not stop in %g s (%s): this worker drains and exits with code %d",
                attempt.job_id,
                attempt.task,
                STUCK_SECONDS,
                lease.stop_reason,
                EXIT_RECYCLE,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
        self.drain()

    # -- drain -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Called by a host that has found work for the sweeper."""
        self._sweeper.wake_unless_recent()

    def drain(self) -> None:
        """Stop claiming, and end when all running jobs have ended."""
        self._renewer.wake()
        if self._draining.is_set():
            return
        self._log("worker %s %s", self.owner, self._settings.drain_text(len(self.attempts)))
        self._draining.set()
        self._claimer.stop()
        self._give_back(self._slots.give_back())

    def stop_now(self) -> None:
        """While draining: end the grace period now."""
        self._stop_now.set()

    async def _drain(self, claiming: asyncio.Task[None], *, at_once: bool) -> None:
        """Jobs of a claim that is still under way are given back (see _hold)."""
        await asyncio.wait({claiming}, timeout=self._settings.lease_timeout_seconds)
        claiming.cancel()  # leases that it still got would not be renewed
        self._give_back(self._slots.give_back())
        await self._wait_for_attempts(0.0 if at_once else self._settings.shutdown_grace_seconds)
        for lease in self.leases.all():
            lease.stop(StopReason.DRAIN)
        if self.attempts:
            await asyncio.wait(set(self.attempts), timeout=STUCK_SECONDS + 1.0)
        # Jobs with a handler that cannot be stopped are released last.
        for lease in self.leases.all():
            if not lease.ended:
                self._end(lease, outcomes.of_stop(lease, 0.0))
        try:
            async with asyncio.timeout(self._settings.lease_timeout_seconds):
                await self._finisher.flushed()
        except TimeoutError:
            text = "%s could not be written: the jobs are recovered when their leases expire"
            log.error(text, count(len(self.leases), "outcome"))

    async def _wait_for_attempts(self, seconds: float) -> None:
        now, stop_now = self._loop.time, asyncio.create_task(self._stop_now.wait())
        deadline = now() + seconds
        while self.attempts and not self._stop_now.is_set() and (left := deadline - now()) > 0:
            await asyncio.wait(
                {stop_now, *self.attempts}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        stop_now.cancel()

    def drain_if_idle(self) -> None:
        """The manager has too many workers: drain, unless this one holds leases."""
        if not len(self.leases) and not self.attempts:
            self.drain()


def _crashes(*parts: asyncio.Task[None]) -> list[asyncio.Task[None]]:
    ended = [part for part in parts if part.done() and not part.cancelled()]
    return [part for part in ended if part.exception() is not None]
