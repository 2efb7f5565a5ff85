"""Keeps the right number of workers running: up at once, down slowly, dead ones replaced.

    store --StoreSnapshot--> rescale (model/scaling) --count--> fleet: start, stop if idle

Process slots (`process_slots`) bound the number of workers; heartbeats in the store show which are
idle. Scaling down interrupts no job: a worker that is asked to end decides whether it is idle. If
the manager is killed, its workers continue. The next manager of the same folder takes them over; if
none starts within seconds, they drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from freehold.errors import Refused, StoreError, StoreUnavailable
from freehold.exit_codes import EXIT_DONE, EXIT_KILLED
from freehold.manager import process_slots
from freehold.manager.fleet import Fleet
from freehold.manager.spawn import Kill, Start, is_group_gone, kill
from freehold.manager.store_snapshot import ManagerStore, StoreSnapshot, take_snapshot
from freehold.manager.worker_process import WorkerProcess
from freehold.model.plural import count
from freehold.model.scaling import Scale, ScaleRule, rescale
from freehold.rare_warning import RareWarning
from freehold.telemetry import Telemetry, log

#: How often the manager checks that its workers are alive.
TICK_SECONDS = 0.25
#: Workers that check the manager lock hold it for a moment, so it is tried repeatedly.
_LOCK_SECONDS = 2.0
_LOCK_CHECK_SECONDS = 0.05
#: A store that hangs must not keep the manager from checking its workers.
_SNAPSHOT_SECONDS = 5.0
#: After a second stop signal, workers that still run after this time are killed.
_KILL_SECONDS = 30.0


def new_manager() -> str:
    return f"m{os.getpid():x}-{secrets.token_hex(4)}"


def already_runs(folder: Path) -> Refused:
    return Refused(
        f"manager {process_slots.manager_in(folder)} already runs here for this store: "
        "stop it, or give this one another --name"
    )


class ScaleDecision(NamedTuple):
    """Another number of workers, and why."""

    before: int
    after: int
    reason: str


class Manager:
    """One per folder."""

    def __init__(
        self,
        store: ManagerStore,
        rule: ScaleRule,
        start: Start,
        folder: Path,
        *,
        queues: Sequence[str],
        scale_seconds: float,
        grace_seconds: float,
        name: str = "",
        kill: Kill = kill,
        telemetry: Telemetry | None = None,
        is_group_gone: Callable[[int], bool] = is_group_gone,
    ) -> None:
        self.name = name or new_manager()
        self._store = store
        self._rule = rule
        self._folder = folder
        self._queues = queues
        self._scale_seconds = scale_seconds
        self._grace_seconds = grace_seconds
        self._fleet = Fleet(folder, rule.max_count, start, grace_seconds, kill)
        self._scale = Scale(wanted=rule.default_count)
        self._stopping = asyncio.Event()
        self._stopping_jobs = asyncio.Event()
        self._store_part = (telemetry or Telemetry()).store_health.part("manager")
        self._snapshot_at = 0.0
        self._file_error = RareWarning("the manager cannot use its files, trying again: %s")
        self._is_group_gone = is_group_gone

    async def run(self) -> int:
        """Run until stopped and until all workers have ended. Returns the exit code."""
        with contextlib.ExitStack() as stack:
            await self._take_lock(stack)
            loop = asyncio.get_running_loop()
            log.info(
                "manager %s started: %d to %d workers",
                self.name,
                self._rule.default_count,
                self._rule.max_count,
            )
            self._fleet.adopt(loop.time())
            await self._manage(loop)
            await self._drain_all(loop)
        log.info("manager %s ended", self.name)
        return EXIT_KILLED if self._fleet.killed else EXIT_DONE

    def stop(self) -> None:
        """Drain all workers, then end. A second call stops their running jobs."""
        if self._stopping.is_set():
            self._stopping_jobs.set()
        self.drain()

    def drain(self) -> None:
        """The same as the first `stop`, however often it is called."""
        self._stopping.set()

    def replace_workers(self) -> None:
        """Replace all workers, by drain."""
        if not self._stopping.is_set():
            self._fleet.replace_all(asyncio.get_running_loop().time())

    async def _take_lock(self, stack: contextlib.ExitStack) -> None:
        tries = round(_LOCK_SECONDS / _LOCK_CHECK_SECONDS)
        for _ in range(tries):
            if stack.enter_context(process_slots.manager_lock(self._folder, self.name)):
                return
            stack.close()
            await asyncio.sleep(_LOCK_CHECK_SECONDS)
        raise already_runs(self._folder)

    async def _manage(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stopping.is_set():
            with self._retried():
                self._fleet.reap(loop.time())
                if loop.time() >= self._snapshot_at:
                    self._snapshot_at = loop.time() + self._scale_seconds
                    await self._read_store(loop)
                now = loop.time()
                self._fleet.start(self._scale.wanted - len(self._fleet.working(now)), now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(TICK_SECONDS, self._scale_seconds)):
                    await self._stopping.wait()

    @contextlib.contextmanager
    def _retried(self) -> Iterator[None]:
        """The manager's files fail where the process has too many open, or the disk is broken. That
        ends no worker: the manager logs it and does the same again at its next tick."""
        try:
            yield
        except OSError as error:
            self._check_folder()
            self._file_error.log(error)

    def _check_folder(self) -> None:
        if not process_slots.is_intact(self._folder):
            raise Refused(f"{self._folder} was removed while the manager ran: start it again")

    async def _read_store(self, loop: asyncio.AbstractEventLoop) -> None:
        process_slots.touch(self._folder)
        self._check_folder()
        try:
            async with asyncio.timeout(_SNAPSHOT_SECONDS):
                snapshot = await take_snapshot(self._store)
                await self._hand_back()
        except (StoreError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                error = StoreUnavailable(f"no result within {_SNAPSHOT_SECONDS:g} s")
            wait_seconds = self._store_part.failed(error, self._scale_seconds)
            self._snapshot_at = loop.time() + wait_seconds
            self._fleet.ignore_silence()
            return
        self._store_part.works()
        self._fleet.record_heartbeats(snapshot.workers, loop.time())
        if decision := self._rescale(snapshot, loop.time()):
            await self._record(decision)

    async def _hand_back(self) -> None:
        """End the leases of workers that have died, so that their jobs need not wait for the
        expiry; not while a child process of such a worker may still run a job."""
        for pid, owner in tuple(self._fleet.dead.items()):
            if not self._is_group_gone(pid):
                continue
            if expired := await self._store.expire_leases(owner):
                log.info("worker process %d is dead: %s end now", pid, count(expired, "lease"))
            await self._store.remove_worker(owner)
            del self._fleet.dead[pid]

    async def _record(self, decision: ScaleDecision) -> None:
        """For people: a manager that cannot write it goes on."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_SNAPSHOT_SECONDS):
                await self._store.record_scaling(self.name, *decision)

    def _rescale(self, snapshot: StoreSnapshot, now: float) -> ScaleDecision | None:
        """Returns what it has decided, if it is a change."""
        working = self._fleet.working(now)
        # Workers that were taken over, or were not idle, count as wanted until they end.
        before = Scale(
            wanted=max(self._scale.wanted, len(working)), quiet_since=self._scale.quiet_since
        )
        load = snapshot.load(self._queues, self._fleet.owners)
        after = rescale(self._rule, before, load, now)
        if after.wanted > before.wanted:
            why = f"{load.ready} ready, {load.leased} leased"
            log.info("scaling up from %d to %d workers: %s", before.wanted, after.wanted, why)
            self._scale = after
            return ScaleDecision(before.wanted, after.wanted, why)
        self._scale = after
        if after.wanted < len(working):
            idle = [each for each in working if _is_idle(each, snapshot)]
            # The newest first: the older ones have warm caches.
            leaving = idle[after.wanted - len(working) :]
            # If none is idle there is no change, and the next snapshot tries again.
            self._scale = Scale(wanted=len(working) - len(leaving)) if leaving else before
            self._fleet.stop_if_idle(leaving, now)
            if leaving:
                log.info("scaling down from %d to %d workers", len(working), self._scale.wanted)
                why = f"{count(len(idle), 'worker')} idle, {load.ready} ready, {load.leased} leased"
                return ScaleDecision(len(working), self._scale.wanted, why)
        return None

    async def _drain_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drain all workers. A second stop signal stops their jobs; then what is left is killed."""
        log.info(
            "draining %s: waiting up to %g s for running jobs to end; another SIGTERM or Ctrl-C "
            "stops them at once",
            count(len(self._fleet), "worker"),
            self._grace_seconds,
        )
        signaled_at: float | None = None
        while len(self._fleet):
            with self._retried():
                self._fleet.drain(loop.time())
                self._fleet.reap(loop.time())
                if self._stopping_jobs.is_set() and signaled_at is None:
                    self._fleet.signal(signal.SIGTERM)
                    signaled_at = loop.time()
                if signaled_at is not None and loop.time() - signaled_at >= _KILL_SECONDS:
                    self._fleet.signal(signal.SIGKILL)
                    signaled_at = loop.time()
                    self._fleet.killed += len(self._fleet)
            await asyncio.sleep(TICK_SECONDS / 5)


def _is_idle(each: WorkerProcess, snapshot: StoreSnapshot) -> bool:
    worker = snapshot.workers.get(each.owner or "")
    return worker is not None and worker.is_idle
