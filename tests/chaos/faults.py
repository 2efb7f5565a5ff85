"""Faults of processes, connections and databases, at random times from a seed.

Every fault is recorded with the processes concerned and whether it can cost a lease, because the
checker excuses a lost lease only by a fault.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any

from freehold.errors import StoreError
from tests.chaos.database import PostgresTarget, SqliteTarget, Target
from tests.chaos.ghosts import Ghosts, unfinished
from tests.chaos.plan import Plan
from tests.chaos.processes import ChaosProcess, Processes
from tests.chaos.proxy import Link, Trap
from tests.chaos.recorder import Recorder, micros

_MICROS = 1_000_000
#: Faults at regular intervals, because each takes long.
_STEADY = frozenset({"hard_stop", "promotion"})
_LINKS_AT_ONCE = 3
#: The share of faults that hit any worker, even one that has just started. The others wait for a
#: worker in the middle of an attempt: a slow machine would otherwise start workers more slowly than
#: they are killed, and no attempt would ever be interrupted.
_AT_ONCE_SHARE = 0.2
_CHECK_SECONDS = 0.05


class Faults:
    """The faults of one run."""

    def __init__(self, plan: Plan, processes: Processes, recorder: Recorder) -> None:
        self._plan = plan
        self._processes = processes
        self._recorder = recorder
        self._chance = random.Random(f"{plan.seed}/faults")
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()
        #: Only one fault at a time may stop or replace the server.
        self._server = asyncio.Lock()
        self.counts: Counter[str] = Counter()
        #: Of a cluster, by kind: from each fault until another node was the primary.
        self.new_primary_seconds: dict[str, list[float]] = {}

    def begin(self, target: Target, ghosts: Ghosts) -> None:
        self._target = target
        self._ghosts = ghosts
        for kind, mean in sorted(self._plan.faults.items()):
            self._spawn(self._repeat(kind, mean), kind)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, kind: str, mean: float) -> None:
        chance = random.Random(f"{self._plan.seed}/{kind}")
        inject = getattr(self, f"_{kind}")
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._stopped.is_set():
            due += mean if kind in _STEADY else chance.expovariate(1 / mean)
            due = max(due, loop.time())
            if await self._continues_after(due - loop.time()):
                await inject()

    async def _continues_after(self, seconds: float) -> bool:
        """Waits, and returns False as soon as the faults are stopped."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)
        return not self._stopped.is_set()

    async def stop(self) -> None:
        """Starts no more faults, and waits for the last ones, including frozen processes and stale
        writes."""
        self._stopped.set()
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    # -- records -----------------------------------------------------------------------------

    def on_trap(self, link: Link, trap: Trap) -> None:
        """A trap of the proxy was triggered, which costs a response but not a lease."""
        self.counts[trap] += 1
        self._record_fault(trap, [link.name], grave=False)

    def _record_fault(
        self,
        kind: str,
        names: Iterable[str],
        *,
        grave: bool = True,
        at: int | None = None,
        until: int | None = None,
    ) -> None:
        for name in names:
            self._recorder.record("fault", actor=name, at=at, kind=kind, grave=grave, until=until)

    def _record_shared_fault(self, kind: str, at: int, before: Iterable[str]) -> None:
        """Recorded when it is over, for every worker that ran at any time of it."""
        self.counts[kind] += 1
        names = {*before, *self._names()}
        self._record_fault(kind, sorted(names), at=at, until=self._after_lease())
        self._recorder.record("fault", actor="all", at=at, kind=kind, until=micros())

    def _names(self) -> list[str]:
        return [worker.name for worker in self._processes.workers]

    def _after_lease(self) -> int:
        """Until a lease that could not be renewed has expired, with time for another one."""
        return micros() + int(2 * self._plan.lease_seconds * _MICROS)

    # -- processes ---------------------------------------------------------------------------

    async def _random_worker(self) -> ChaosProcess | None:
        """A worker with an unfinished attempt, as soon as there is one; sometimes any at once."""
        at_once = self._chance.random() < _AT_ONCE_SHARE
        while True:
            candidates = [
                worker
                for worker in self._processes.undisturbed()
                if at_once or self._has_attempt(worker)
            ]
            if candidates:
                return self._chance.choice(candidates)
            if at_once or not await self._continues_after(_CHECK_SECONDS):
                return None

    def _has_attempt(self, worker: ChaosProcess) -> bool:
        return bool(unfinished(self._plan.record_folder / worker.name))

    async def _kill(self) -> None:
        worker = await self._random_worker()
        if worker is None:
            return
        self._record_fault("kill", [worker.name])
        worker.send(signal.SIGKILL)
        self.counts["kill"] += 1
        self._spawn(self._send_stale_writes(worker.name), "ghost")

    async def _send_stale_writes(self, name: str) -> None:
        """After its leases have expired; without a store there are no stale writes."""
        await asyncio.sleep(self._plan.lease_seconds + 0.3)
        try:
            await self._ghosts.send_stale_writes(
                name, self._plan.record_folder / name, self._plan.lease_seconds
            )
        except StoreError:
            self.counts["ghosts without a store"] += 1

    async def _freeze(self) -> None:
        worker = await self._random_worker()
        if worker is not None:
            self._spawn(self._freeze_one(worker), "freeze")

    async def _freeze_one(self, worker: ChaosProcess) -> None:
        seconds = self._plan.lease_seconds * self._chance.uniform(1.15, 1.8)
        at, before = micros(), self._names()
        worker.is_frozen = True
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        if isinstance(self._target, SqliteTarget):
            # It may be frozen while it holds the write lock, which blocks all other writers.
            self._record_shared_fault("freeze", at, before)
        else:
            self._record_fault("freeze", [worker.name], at=at, until=self._after_lease())
            self.counts["freeze"] += 1
        worker.send(signal.SIGCONT)
        worker.is_frozen = False

    async def _drain(self) -> None:
        worker = await self._random_worker()
        if worker is None:
            return
        self._record_fault("drain", [worker.name], grave=False)
        worker.is_draining = True
        worker.send(signal.SIGTERM)
        self.counts["drain"] += 1

    # -- connections -------------------------------------------------------------------------

    def _links(self) -> list[Link]:
        assert isinstance(self._target, PostgresTarget)
        return self._target.proxy.some(self._chance, _LINKS_AT_ONCE)

    async def _cut(self) -> None:
        for link in self._links():
            self.counts["cut"] += 1
            self._record_fault("cut", [link.name], grave=False)
            link.cut()

    async def _arm(self, trap: Trap) -> None:
        for link in self._links():
            link.trap = trap

    async def _cut_at_commit(self) -> None:
        await self._arm("cut_at_commit")

    async def _answer_lost(self) -> None:
        await self._arm("answer_lost")

    async def _answer_lost_at_commit(self) -> None:
        await self._arm("answer_lost_at_commit")

    async def _request_lost(self) -> None:
        await self._arm("request_lost")

    async def _stall(self) -> None:
        for link in self._links():
            self._spawn(self._stall_one(link), "stall")

    async def _stall_one(self, link: Link) -> None:
        """Half open: nothing passes for a while, and then the link breaks or works again."""
        at = micros()
        link.stall()
        await asyncio.sleep(self._plan.lease_seconds * self._chance.uniform(0.5, 2.0))
        self.counts["stall"] += 1
        self._record_fault("stall", [link.name], at=at, until=self._after_lease())
        if self._chance.random() < 0.5:
            link.cut()
        else:
            link.flow()

    async def _blackhole(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        at, before = micros(), self._names()
        self._target.proxy.stall_all()
        await asyncio.sleep(self._plan.lease_seconds * self._chance.uniform(1.1, 2.0))
        self._target.proxy.cut_all()
        self._record_shared_fault("blackhole", at, before)

    # -- databases ---------------------------------------------------------------------------

    async def _hard_stop(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        at, before = micros(), self._names()
        async with self._server:
            await self._target.stop_hard(self._chance.choice((0.0, 0.0, 0.5, 1.5)))
        self._record_shared_fault("hard_stop", at, before)

    async def _promotion(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        async with self._server:  # no other fault stops it while it is copied
            await self._target.prepare_standby()
            at, before = micros(), self._names()
            await self._target.promote_standby()
        self._record_shared_fault("promotion", at, before)

    async def _terminate(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        at, before = micros(), self._names()
        await self._target.terminate_all()
        self._record_shared_fault("terminate", at, before)

    async def _snapshot(self) -> None:
        self.counts["snapshot"] += 1
        await self._target.hold_snapshot(self._chance.uniform(3.0, 12.0))

    async def _writer(self) -> None:
        assert isinstance(self._target, SqliteTarget)
        at, before = micros(), self._names()
        if await self._target.hold_writers(self._chance.uniform(0.5, 3.5)):
            self._record_shared_fault("writer", at, before)

    async def _disk_full(self) -> None:
        assert isinstance(self._target, SqliteTarget)
        if not self._target.can_fill:
            return
        at, before = micros(), self._names()
        await self._target.fill_disk(self._chance.uniform(0.5, 2.5))
        self._record_shared_fault("disk_full", at, before)
