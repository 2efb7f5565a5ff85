"""The parts of a worker put together: one process, one owner, one life.

    claimer --attempts--> slots --held--> runner --outcome--> finisher
                             keeper (a thread): renews, shows, reads requests
                             scribe: writes down what handlers say
                             sweeper: recovers, makes ready

A part that crashes stops the whole worker, loudly. SIGTERM drains: nothing new is claimed,
what never started is given back, what runs may end within the grace period, and is then
stopped.
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
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.retry import DEFAULT_RETRY
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
from freehold.worker.execution.fenced_transaction import Fencing
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
from freehold.worker.metrics_server import monitored
from freehold.worker.process_signals import stop_signals
from freehold.worker.renewal_thread import RenewalHost, RenewalThread, StartRenewal
from freehold.worker.slots import LATE_SECONDS, Slots
from freehold.worker.sweeper import SWEEP_SECONDS, Sweeper

_IDLE_LOOK_SECONDS = 0.02
_LEAVE_SECONDS = 2.0


def new_owner() -> str:
    """Short, because it is written with every claim; random, because it must never come again."""
    return f"w{os.getpid():x}-{secrets.token_hex(4)}"


class Worker:
    """Runs jobs until it is told to drain."""

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
        keep: StartRenewal = RenewalThread,
        slots: Slots | None = None,
        is_hosted: bool = False,
        tenant: str | None = None,
    ) -> None:
        """``is_hosted``: somebody in this process handles signals and watches the loop for all."""
        self._database = database
        self._tasks = tasks
        self._host = socket.gethostname()
        self._settings = settings
        self._chance = chance
        self.telemetry = telemetry or Telemetry()
        self.owner = owner or new_owner()
        self.hand = HeldLeases()
        self._threads = threads or ThreadPool()
        self._keep = keep
        self._shared_slots = slots
        self._is_hosted = is_hosted
        self._tenant = tenant
        self._children = ProcessPool(self._threads, tenant)
        self._stuck: set[int] = set()
        self.attempts: dict[asyncio.Task[None], HeldLease] = {}
        self._listening = False
        self._looks_for_late = False

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> int:
        """Until drained. Answers the exit code."""
        self._loop = asyncio.get_running_loop()
        #: What every attempt begins with: nothing of another one's.
        self._clean = contextvars.copy_context()
        self._draining = asyncio.Event()
        self._hurry = asyncio.Event()
        self._build(AsyncStore(self._database.async_session()))
        self._say(
            "worker %s starts: queues %s, %d slots, %d tasks, %s",
            self.owner,
            ", ".join(self._settings.queues),
            self._settings.concurrency,
            len(self._tasks.names),
            self._database.shown,
        )
        if others := self._tasks.queues - set(self._settings.queues):
            self._say(
                "worker %s leaves jobs of these queues to others: %s",
                self.owner,
                ", ".join(sorted(others)),
            )
        self._watch = LoopWatchdog(self.attempts, self.telemetry, self._loop.time)
        keeping = self._keep(self._keeper, self._database, self._watch, self._heard)
        with self._signals(), monitored(self.telemetry, self._settings):
            keeping.start()
            try:
                return await self._live(keeping)
            finally:
                await keeping.stop()
                await self._leave()
                self._children.close()
                self._threads.close()
                self._say("worker %s has ended", self.owner)

    def _say(self, text: str, *values: object) -> None:
        """Of its life. In a host workers come and go all the time."""
        level = logging.DEBUG if self._is_hosted else logging.INFO
        whose = {} if self._tenant is None else {"tenant": self._tenant}
        log.log(level, text, *values, extra=fields(worker=self.owner, **whose))

    def _signals(self) -> contextlib.AbstractContextManager[None]:
        if self._is_hosted:
            return contextlib.nullcontext()
        return stop_signals(self.drain, self.hurry, self._rest)

    def _build(self, store: AsyncStore) -> None:
        settings = self._settings
        self._store = store
        self._managed: ManagerLink | None = None
        if settings.managed_in is not None and settings.seat is not None:
            self._managed = ManagerLink(settings.managed_in, settings.seat, self.owner)
        self._slots = slots = self._shared_slots or Slots(settings.concurrency, self._loop.time)
        self.telemetry.watch("slots", lambda: slots.count)
        self.telemetry.watch("slots_running", lambda: len(slots.running))
        self.telemetry.watch("slots_waiting", lambda: len(slots.waiting))
        self._keeper = LeaseRenewer(
            AsyncStore(self._database.async_session()),
            self.owner,
            self.hand,
            HeartbeatSchedule(self._beat),
            self.telemetry,
            lease_seconds=settings.lease_seconds,
            request_poll_seconds=settings.request_poll_seconds,
        )
        self._runner = Runner(
            self._loop, self._tasks, self._threads, self._children, self._on_stuck, self._context
        )
        self._finisher = Finisher(store, self.owner, self.hand, self.telemetry, self._written)
        self._scribe = JobLogWriter(store, self.owner, self.telemetry)
        self._fencing = Fencing(self._database, self.owner, self.hand, self.telemetry, self._loop)
        known = frozenset(self._tasks.names)
        self._known = tuple(sorted(known))
        self._claimer = Claimer(
            store,
            self.owner,
            self.telemetry,
            queues=settings.queues,
            tasks=known,
            lease_seconds=settings.lease_seconds,
            poll_seconds=settings.poll_seconds,
            room=lambda: slots.grant(self._room()),
            soon=slots.soon,
            take=self._take,
            settle=slots.settle,
            is_listening=lambda: self._listening,
            on_nothing=lambda: self._sweeper.look(),
        )
        self._sweeper = Sweeper(
            store,
            self.telemetry,
            tasks=known,
            history_days=settings.history_days,
            chance=self._chance,
            room=self._room,
            on_ready=self._claimer.wake,
            is_watched=lambda: self._is_hosted and self.is_idle,
        )
        slots.attach(self._claimer.poke, self._start_waiting)

    def _beat(self) -> Heartbeat:
        """Also in the keeper's thread."""
        state = WorkerState.DRAINING if self._draining.is_set() else WorkerState.WORKING
        ended, given_back = (
            self.telemetry.total("finished", label) for label in (None, OutcomeKind.GIVE_BACK)
        )
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
            finished=ended - given_back,
            manager=self._managed.manager if self._managed else None,
        )

    async def _leave(self) -> None:
        """Best effort: a word that is not taken back expires."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._store.leave(self.owner)

    async def _live(self, keeping: RenewalHost) -> int:
        """Start the parts; when one crashes, the worker ends, loudly."""
        claiming = asyncio.create_task(self._claimer.run(), name="claimer")
        parts = [
            asyncio.create_task(self._finisher.run(), name="finisher"),
            asyncio.create_task(self._sweeper.run(), name="sweeper"),
            asyncio.create_task(self._scribe.run(), name="scribe"),
            asyncio.create_task(keeping.crashed(), name="keeper"),
        ]
        if self._managed is not None:
            gone = self._managed.until_gone(self._keeper.poke)
            parts.append(asyncio.create_task(gone, name="managed"))
        if not self._is_hosted:
            parts.append(asyncio.create_task(self._watch.beat(), name="watch"))
        draining = asyncio.create_task(self._until_drained(), name="drain")
        try:
            await asyncio.wait({claiming, draining, *parts}, return_when=asyncio.FIRST_COMPLETED)
            self.drain()
            await self._drain(claiming, hurried=bool(_crashes(*parts, claiming)))
            for part in (crashed := _crashes(*parts, claiming)):
                error = part.exception()
                log.error("the %s crashed: %r", part.get_name(), error, exc_info=error)
            if crashed:
                return EXIT_CRASHED
            return EXIT_RECYCLE if self._stuck else EXIT_DONE
        except asyncio.CancelledError:
            # Whoever cancels the worker gets what a second signal gets: nothing stays leased.
            self.drain()
            await self._drain(claiming, hurried=True)
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
            running = itertools.islice(self.attempts, 1)  # while one runs, there is no hurry
            seconds = None if self.attempts else _IDLE_LOOK_SECONDS
            await asyncio.wait(
                {draining, *running}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        draining.cancel()

    @property
    def is_idle(self) -> bool:
        """Nothing in hand, and nothing was found that could be."""
        nothing_in_hand = not self.attempts and not len(self.hand)
        return nothing_in_hand and self._sweeper.has_swept and self._claimer.is_settled

    # -- the way of a job --------------------------------------------------------------------

    def _room(self) -> int:
        return 0 if self._finisher.is_full else self._slots.room()

    def _take(self, attempts: list[Attempt], valid_until: float, limited: Collection[int]) -> None:
        now = self._loop.time()
        for attempt in attempts:
            is_limited = attempt.job_id in limited
            held = HeldLease(attempt, valid_until, taken_at=now, is_limited=is_limited)
            self.hand.take(held)
            self._slots.take(held)
        self._keeper.took(now, valid_until)
        self._sweeper.look(SWEEP_SECONDS)
        if self._draining.is_set():
            self._give_back()
        else:
            self._start_waiting()
            self._look_for_late()

    def _start_waiting(self) -> None:
        while (held := self._slots.next()) is not None:
            task = self._loop.create_task(self._attempt(held), context=self._clean.copy())
            self.attempts[task] = held
            task.add_done_callback(self.attempts.pop)

    async def _attempt(self, held: HeldLease) -> None:
        try:
            outcome = await self._runner.run(held)
            if held.notes is not None:
                await self._scribe.last_words(held, held.notes)
            self._hand_over(held, outcome)
        except Exception as error:  # ours: but no job may hang because of it
            log.exception("job %d: its attempt broke", held.attempt.job_id)
            self._hand_over(held, outcomes.of_exception(error, DEFAULT_RETRY, 0.0))
        finally:
            self._slots.end(held)
            if not self._draining.is_set():
                self._start_waiting()
            self._claimer.poke()

    def _context(self, held: HeldLease) -> Context:
        held.notes = self._scribe.notepad(held)
        return Context(held, self._loop.time, held.notes, self._fencing, self._tenant)

    def _hand_over(self, held: HeldLease, outcome: Outcome | None) -> None:
        if outcome is None:  # the lease was lost, or the handler has finished the job itself
            self.hand.let_go(held)
            return
        request = outcomes.request_known(held)
        self._finisher.submit(held, AttemptEnd(held.attempt, outcome, request, self._chance()))

    def _look_for_late(self) -> None:
        """As long as something waits in hand."""
        if self._slots.waiting and not self._looks_for_late:
            self._looks_for_late = True
            self._loop.call_later(LATE_SECONDS, self._give_back_late)

    def _give_back_late(self) -> None:
        self._looks_for_late = False
        if not self._draining.is_set():
            self._hand_back(self._slots.give_back_late(), "given back: those before it take long")
            self._look_for_late()

    def _give_back(self) -> None:
        self._hand_back(self._slots.give_back(), "given back before it started")

    def _hand_back(self, given: list[HeldLease], reason: str) -> None:
        for held in given:
            is_lost = held.was_stopped_by(StopReason.LEASE_LOST)
            outcome = Outcome(kind=OutcomeKind.GIVE_BACK, reason=reason)
            self._hand_over(held, None if is_lost else outcome)

    # -- hints -------------------------------------------------------------------------------

    def _written(self, waits: bool) -> None:
        self._claimer.poke()
        if waits:
            self._sweeper.poke()

    def _heard(self, hint: str | None) -> None:
        """In the keeper's thread."""
        self._listening = hint is not None
        if hint is None or self._loop.is_closed():
            return
        if hint in ("", notifications.stop_requested(self.owner)):
            self._keeper.poke(asked=True)
        if hint in ("", notifications.SCHEDULED):
            self._loop.call_soon_threadsafe(self._sweeper.poke)
        ours = any(hint == notifications.queue_ready(queue) for queue in self._settings.queues)
        if ours or (hint == "" and self._claimer.is_idle):
            self._loop.call_soon_threadsafe(self._claimer.wake)

    def _on_stuck(self, held: HeldLease) -> None:
        attempt = held.attempt
        if attempt.job_id not in self._stuck:
            self._stuck.add(attempt.job_id)
            log.error(
                "job %d of %s ignores its stop (%s): this process drains and should be replaced",
                attempt.job_id,
                attempt.task,
                held.stop_reason,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
        self.drain()

    # -- drain -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Somebody has seen something to do."""
        self._sweeper.look()

    def drain(self) -> None:
        """Stop claiming and end when everything has ended. A second call hurries."""
        self._keeper.poke()
        if self._draining.is_set():
            return
        self._say("worker %s drains", self.owner)
        self._draining.set()
        self._claimer.stop()
        self._give_back()

    def hurry(self) -> None:
        """The grace period ends now."""
        self._hurry.set()

    async def _drain(self, claiming: asyncio.Task[None], *, hurried: bool) -> None:
        """What a claim under way still brings is given back (see _take)."""
        await asyncio.wait({claiming}, timeout=self._settings.lease_seconds)
        claiming.cancel()  # what it may still bring nobody would renew
        self._give_back()
        await self._wait_for_attempts(0.0 if hurried else self._settings.grace_seconds)
        for held in self.hand.all():
            held.stop(StopReason.DRAIN)
        if self.attempts:
            await asyncio.wait(set(self.attempts), timeout=STUCK_SECONDS + 1.0)
        # What cannot be stopped is released as the very last thing.
        for held in self.hand.all():
            if not held.ended:
                self._hand_over(held, outcomes.of_stop(held, 0.0))
        try:
            async with asyncio.timeout(self._settings.lease_seconds):
                await self._finisher.flushed()
        except TimeoutError:
            log.error(
                "%d ends could not be written: these jobs are recovered when their leases "
                "have run out",
                len(self.hand),
            )

    async def _wait_for_attempts(self, seconds: float) -> None:
        hurry = asyncio.create_task(self._hurry.wait())
        deadline = self._loop.time() + seconds
        while self.attempts and not self._hurry.is_set():
            left = deadline - self._loop.time()
            if left <= 0:
                break
            await asyncio.wait(
                {hurry, *self.attempts}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        hurry.cancel()

    def _rest(self) -> None:
        """A manager has too many workers: go, unless you have something in hand."""
        if not len(self.hand) and not self.attempts:
            self.drain()


def _crashes(*parts: asyncio.Task[None]) -> list[asyncio.Task[None]]:
    ended = [part for part in parts if part.done() and not part.cancelled()]
    return [part for part in ended if part.exception() is not None]
