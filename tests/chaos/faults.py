"""What happens to processes, connections and databases, at random moments from a seed.

Every fault is written down with whom it struck, and whether it can cost a lease: the checker
excuses nobody's lost lease without it.
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
from tests.chaos.ghosts import Ghosts, unended
from tests.chaos.pen import Pen, micros
from tests.chaos.plan import Plan
from tests.chaos.processes import Member, Processes
from tests.chaos.proxy import Link, Trap

_MICROS = 1_000_000
#: Faults that come at a steady pace, because they take long themselves.
_STEADY = frozenset({"hard_stop", "promotion"})
_LINKS_AT_ONCE = 3
#: The share of faults that strike any process, in its first moments too. The others wait for one
#: in the middle of an attempt: a slow machine would otherwise start workers more slowly than they
#: are killed, and no work would ever be interrupted.
_AT_ANY_MOMENT = 0.2
_LOOK_SECONDS = 0.05


class Faults:
    """Of one run. After `stop` no new one happens, and what was frozen goes on."""

    def __init__(self, plan: Plan, processes: Processes, pen: Pen) -> None:
        self._plan = plan
        self._processes = processes
        self._pen = pen
        self._chance = random.Random(f"{plan.seed}/faults")
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        #: Who stops or replaces the server does so alone.
        self._server = asyncio.Lock()
        self.counts: Counter[str] = Counter()

    def begin(self, target: Target, ghosts: Ghosts) -> None:
        self._target = target
        self._ghosts = ghosts
        for kind, mean in sorted(self._plan.faults.items()):
            self._spawn(self._again_and_again(kind, mean), kind)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _again_and_again(self, kind: str, mean: float) -> None:
        chance = random.Random(f"{self._plan.seed}/{kind}")
        strike = getattr(self, f"_{kind}")
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._over.is_set():
            due += mean if kind in _STEADY else chance.expovariate(1 / mean)
            due = max(due, loop.time())
            if await self._goes_on_for(due - loop.time()):
                await strike()

    async def _goes_on_for(self, seconds: float) -> bool:
        """False as soon as the faults are over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        return not self._over.is_set()

    async def stop(self) -> None:
        """The last ones end, the frozen go on, and the ghosts have had their say."""
        self._over.set()
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    # -- writing down ------------------------------------------------------------------------

    def sprung(self, link: Link, trap: Trap) -> None:
        """A trap of the proxy: it costs an answer, not a lease."""
        self.counts[trap] += 1
        self._struck(trap, [link.name], grave=False)

    def _struck(
        self,
        kind: str,
        names: Iterable[str],
        *,
        grave: bool = True,
        at: int | None = None,
        until: int | None = None,
    ) -> None:
        for name in names:
            self._pen.note("fault", who=name, at=at, kind=kind, grave=grave, until=until)

    def _struck_all(self, kind: str, at: int, before: Iterable[str]) -> None:
        """Written when it is over: whoever was there at any time of it."""
        self.counts[kind] += 1
        names = {*before, *self._names()}
        self._struck(kind, sorted(names), at=at, until=self._after_lease())
        self._pen.note("fault", who="everybody", at=at, kind=kind, until=micros())

    def _names(self) -> list[str]:
        return [worker.name for worker in self._processes.workers]

    def _after_lease(self) -> int:
        """Until a lease that could not be renewed has run out, and one more could be."""
        return micros() + int(2 * self._plan.lease_seconds * _MICROS)

    # -- processes ---------------------------------------------------------------------------

    async def _someone(self) -> Member | None:
        """A worker at work, as soon as there is one; or, now and then, any worker at once."""
        at_once = self._chance.random() < _AT_ANY_MOMENT
        while True:
            able = [each for each in self._processes.whole() if at_once or self._is_at_work(each)]
            if able:
                return self._chance.choice(able)
            if at_once or not await self._goes_on_for(_LOOK_SECONDS):
                return None

    def _is_at_work(self, worker: Member) -> bool:
        return bool(unended(self._plan.books / worker.name))

    async def _kill(self) -> None:
        worker = await self._someone()
        if worker is None:
            return
        self._struck("kill", [worker.name])
        worker.send(signal.SIGKILL)
        self.counts["kill"] += 1
        self._spawn(self._haunt(worker.name), "ghost")

    async def _haunt(self, name: str) -> None:
        """After its lease is over; where the store is down just then, no ghost comes."""
        await asyncio.sleep(self._plan.lease_seconds + 0.3)
        try:
            await self._ghosts.haunt(name, self._plan.books / name, self._plan.lease_seconds)
        except StoreError:
            self.counts["ghosts without a store"] += 1

    async def _freeze(self) -> None:
        worker = await self._someone()
        if worker is not None:
            self._spawn(self._freeze_one(worker), "freeze")

    async def _freeze_one(self, worker: Member) -> None:
        seconds = self._plan.lease_seconds * self._chance.uniform(1.15, 1.8)
        at, before = micros(), self._names()
        worker.is_frozen = True
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        if isinstance(self._target, SqliteTarget):
            # It may have stopped in the middle of a write: nobody else can write then.
            self._struck_all("freeze", at, before)
        else:
            self._struck("freeze", [worker.name], at=at, until=self._after_lease())
            self.counts["freeze"] += 1
        worker.send(signal.SIGCONT)
        worker.is_frozen = False

    async def _drain(self) -> None:
        worker = await self._someone()
        if worker is None:
            return
        self._struck("drain", [worker.name], grave=False)
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
            self._struck("cut", [link.name], grave=False)
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
        """Half open: no word comes through, and then it breaks, or it goes on as if nothing
        had been."""
        at = micros()
        link.stall()
        await asyncio.sleep(self._plan.lease_seconds * self._chance.uniform(0.5, 2.0))
        self.counts["stall"] += 1
        self._struck("stall", [link.name], at=at, until=self._after_lease())
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
        self._struck_all("blackhole", at, before)

    # -- databases ---------------------------------------------------------------------------

    async def _hard_stop(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        at, before = micros(), self._names()
        async with self._server:
            await self._target.stop_hard(self._chance.choice((0.0, 0.0, 0.5, 1.5)))
        self._struck_all("hard_stop", at, before)

    async def _promotion(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        async with self._server:  # nobody stops it while it is copied
            await self._target.prepare_standby()
            at, before = micros(), self._names()
            await self._target.promote_standby()
        self._struck_all("promotion", at, before)

    async def _terminate(self) -> None:
        assert isinstance(self._target, PostgresTarget)
        at, before = micros(), self._names()
        await self._target.terminate_all()
        self._struck_all("terminate", at, before)

    async def _snapshot(self) -> None:
        self.counts["snapshot"] += 1
        await self._target.hold_snapshot(self._chance.uniform(3.0, 12.0))

    async def _writer(self) -> None:
        assert isinstance(self._target, SqliteTarget)
        at, before = micros(), self._names()
        if await self._target.hold_writers(self._chance.uniform(0.5, 3.5)):
            self._struck_all("writer", at, before)

    async def _disk_full(self) -> None:
        assert isinstance(self._target, SqliteTarget)
        if not self._target.can_fill:
            return
        at, before = micros(), self._names()
        await self._target.fill_disk(self._chance.uniform(0.5, 2.5))
        self._struck_all("disk_full", at, before)
