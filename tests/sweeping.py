"""Processes that do nothing but fire schedules, and are killed in the middle of it."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from freehold.errors import StoreError
from freehold.model.job import NewJob
from freehold.model.schedule import ScheduleDefinition
from freehold.model.timing import Cron, Every
from freehold.store.store import Store

TICK_SECONDS = 60
_BATCH = 100
#: Between two polls of a sweeper that found nothing, or no store.
_IDLE_SECONDS = 0.01


def definitions(count: int) -> list[ScheduleDefinition]:
    """Each falls due every minute, and makes a job for every tick, whatever happens."""
    return [
        ScheduleDefinition(
            name=f"s{number:05}",
            timing=Cron("* * * * *", "Europe/Berlin") if number % 2 else Every(minutes=1),
            job=NewJob(task="t"),
            overlap="allow",
            catch_up="all",
        )
        for number in range(count)
    ]


def ticks_of(rows: Iterable[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """How many jobs each tick of each schedule has, from their tags and policies."""
    return Counter((json.loads(tags)[0], json.loads(policy)["tick"]["at"]) for tags, policy in rows)


class SharedClock:
    """A clock that all processes forked afterwards share, and only the test moves."""

    def __init__(self, micros: int) -> None:
        self._memory = mmap.mmap(-1, 8)
        self._micros = micros
        self.advance(0)

    def advance(self, seconds: float) -> None:
        self._micros += round(seconds * 1_000_000)
        self._memory[:8] = struct.pack("q", self._micros)

    def __call__(self) -> int:
        return int(struct.unpack("q", self._memory[:8])[0])


class Sweepers:
    """Forked processes; `kill` ends some of them at once and starts others in their place."""

    def __init__(self, count: int, open_store: Callable[[], Store], seed: int = 0) -> None:
        self._open_store = open_store
        self._chance = random.Random(seed)
        self._pids: list[int] = []
        self.killed = 0
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        seed = self._chance.random()
        pid = os.fork()
        if pid == 0:
            try:
                _sweep(self._open_store(), random.Random(seed))
            finally:
                os._exit(1)
        self._pids.append(pid)

    def kill(self, count: int) -> None:
        """At random moments, as deaths come."""
        for pid in self._chance.sample(self._pids, count):
            time.sleep(self._chance.uniform(0.0, 0.02))  # until the kill, not a wait for an event
            self._end(pid)
            self._start()
            self.killed += 1

    def _end(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        self._pids.remove(pid)
        assert os.WIFSIGNALED(status), f"a sweeper ended by itself: {status}"

    def close(self) -> None:
        for pid in tuple(self._pids):
            self._end(pid)


def _sweep(store: Store, chance: random.Random) -> None:
    while True:
        seen = 0
        with contextlib.suppress(StoreError):
            seen = store.fire_schedules(_BATCH, chance.random()).seen
        if not seen:
            time.sleep(_IDLE_SECONDS)


@contextlib.contextmanager
def sweeping(count: int, open_store: Callable[[], Store]) -> Iterator[Sweepers]:
    sweepers = Sweepers(count, open_store)
    try:
        yield sweepers
    finally:
        sweepers.close()
