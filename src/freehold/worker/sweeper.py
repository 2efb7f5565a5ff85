"""Recovers expired leases, makes due jobs ready, brings parked jobs back, forgets old ones.

Every worker runs one. Each step is bounded, holds no lock while it thinks, and does no harm
when others do the same at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.store.sweep_check import LaneScan, SweepCheck
from freehold.store.types import Recovered
from freehold.telemetry import Telemetry, fields, log

BATCH = 200
SWEEP_SECONDS = 1.0
#: However many they are, each looks this often, for the others may be gone; and so does one for
#: whom somebody else looks whether there is something to do.
SWEEP_SECONDS_LIMIT = 10.0
#: All of them together.
_SWEEPS_A_SECOND = 4
#: So many wake at the very moment that a job falls due; of a larger fleet the others come later.
_ALERT = 8
#: Between two walks over all lanes, of which each sweep looks at so many.
LANES_SECONDS = 60.0
LANES = 1000
RETENTION_SECONDS = 3600.0
#: Workers that said nothing for this long are forgotten with the history.
SILENT_SECONDS = 3600.0
#: While the store fails, it is not hurried.
_ERROR_SECONDS = 2.0
_APART_SECONDS = 0.05


class SweepStore(Protocol):
    async def recover(self, limit: int, chance: float) -> list[Recovered]: ...

    async def make_ready(self, limit: int) -> int: ...

    async def chores(self, tasks: Sequence[str]) -> SweepCheck: ...

    async def relieve(self, limit: int) -> int: ...

    async def wake_lanes(self, limit: int) -> int: ...

    async def free_lanes(self, after: str, limit: int) -> LaneScan: ...

    async def unpark(self, tasks: Sequence[str], limit: int) -> int: ...

    async def retain(self, history_days: float, limit: int) -> int: ...

    async def forget_workers(self, silent_seconds: float) -> int: ...


def notify_promoted(walk: LaneScan, telemetry: Telemetry) -> None:
    for lane in walk.freed:
        telemetry.count("lanes_freed")
        log.warning("lane %s stood still: whoever was to pass it on is gone", lane)


class Sweeper:
    """One per worker."""

    def __init__(
        self,
        store: SweepStore,
        telemetry: Telemetry,
        *,
        tasks: frozenset[str],
        history_days: float,
        chance: Callable[[], float],
        room: Callable[[], int],
        on_ready: Callable[[], None],
        is_watched: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._tasks = sorted(tasks)
        self._history_days = history_days
        self._chance = chance
        self._room = room
        self._on_ready = on_ready
        self._is_watched = is_watched
        self._poke = asyncio.Event()
        self._retain_at = self._walk_at = self._began = 0.0
        self._walked_to = ""
        self._asked_at = -_APART_SECONDS
        #: Whether all that was due, lost or parked when the worker started is ready by now.
        self.has_swept = False

    def poke(self) -> None:
        """Something was scheduled: look when it is due."""
        self._poke.set()

    def look(self, after: float = SWEEP_SECONDS / 2) -> None:
        """A claimer found nothing: sweep now, unless that was done a moment ago."""
        if asyncio.get_running_loop().time() - self._began >= after:
            self._poke.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._retain_at = loop.time() + RETENTION_SECONDS * self._chance()
        self._walk_at = loop.time() + LANES_SECONDS * self._chance()
        while True:
            self._poke.clear()
            self._began = loop.time()
            try:
                wait = await self.run_once()
            except StoreError as error:
                self._telemetry.count("store_errors", label="sweeper")
                log.warning("sweeping failed, trying again: %s", error)
                wait = _ERROR_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._poke.wait()
                    # However much is scheduled, sweeps that were asked for keep their distance.
                    await asyncio.sleep(self._asked_at + _APART_SECONDS - loop.time())
                    self._asked_at = loop.time()

    async def run_once(self) -> float:
        """One sweep; answers how long until the next. At start-up it drains all that expired."""
        chores = await self._store.chores(self._tasks)
        if chores.expired:
            await self.recover_all()
        is_due = chores.due_seconds == 0.0
        # One batch a sweep, however much is due: recovery never waits behind it.
        made_ready = await self._store.make_ready(BATCH) if is_due else 0
        await self._wake_others(chores)
        if made_ready:
            self._on_ready()
        now = asyncio.get_running_loop().time()
        if now >= self._retain_at and not await self._store.retain(self._history_days, BATCH):
            await self._store.forget_workers(SILENT_SECONDS)
            self._retain_at = now + RETENTION_SECONDS
        self.has_swept = made_ready < BATCH and not chores.parked
        if now >= self._walk_at and not await self._walk():
            self._walk_at = now + LANES_SECONDS
        if is_due or chores.expired:  # look when the next falls due
            return 0.0
        return self._rest(chores)

    async def _wake_others(self, chores: SweepCheck) -> None:
        """Nets: whoever frees room for a limit, or resumes a lane, makes ready what waited for
        it. Parked jobs come back no faster than there is room for them: a worker that does not
        know the task may be first to claim it, and would only park it again."""
        woken = 0
        if chores.limited:
            woken += await self._store.relieve(BATCH)
        if chores.stopped:
            woken += await self._store.wake_lanes(BATCH)
        if chores.parked and (room := self._room()) > 0:
            woken += await self._store.unpark(self._tasks, room)
        if woken:
            self._on_ready()

    async def _walk(self) -> bool:
        """Look at some lanes, and say whether there are more; see `freeing`."""
        walk = await self._store.free_lanes(self._walked_to, LANES)
        self._walked_to = walk.reached
        notify_promoted(walk, self._telemetry)
        return bool(walk.reached)

    def _rest(self, chores: SweepCheck) -> float:
        """The more there are who sweep, the more rarely each has to; and not in step."""
        most = min(max(SWEEP_SECONDS, chores.workers / _SWEEPS_A_SECOND), SWEEP_SECONDS_LIMIT)
        if self._is_watched():
            most = SWEEP_SECONDS_LIMIT
        wait = most * (0.75 + 0.5 * self._chance())
        if chores.due_seconds is None:
            return wait
        late = self._chance() * min(max(0, chores.workers - _ALERT) * 0.01, 1.0)
        return max(0.001, min(wait, chores.due_seconds + late))

    async def recover_all(self) -> int:
        total = 0
        while recovered := await self._store.recover(BATCH, self._chance()):
            total += len(recovered)
            for each in recovered:
                self._telemetry.count("recovered")
                attempt = each.attempt
                log.warning(
                    "job %d of %s: worker %s was lost, now %s",
                    attempt.job_id,
                    attempt.task,
                    attempt.owner,
                    each.decision.state,
                    extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
                )
            self._on_ready()
        return total
