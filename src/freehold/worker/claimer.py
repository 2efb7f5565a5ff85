"""Free slots -> leases: as many as can run, and a few more where that keeps the slots busy.

A claimer serves the queues that it was given, or all that have ready jobs. With ``*`` it finds its
queues in the store: every second while it claims jobs, and before each claim after one that found
nothing. So a claim from an idle store is one such read. A notification names its queue, which is
then claimed from at once, without that read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from math import inf
from typing import Protocol

from freehold.errors import RowRefused, StoreError
from freehold.model.fairness import Fairness
from freehold.model.job import DEFAULT_QUEUE, Attempt
from freehold.model.limit import ALL_QUEUES, Limit
from freehold.rare_warning import RareWarning
from freehold.store.types import ClaimRequest, QueueDemand, SetAside
from freehold.store.verbs.claim import (
    CHEAP_HEAD_SECONDS,
    HEAD_SHARE,
    ClaimCursor,
    ClaimCursors,
)
from freehold.store_health import PASSING
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.config import WorkerSettings
from freehold.worker.slots import Slots
from freehold.worker.wakeups import Wakeups

#: The first wait of a claimer that found nothing. It grows with each further empty claim.
FIRST_WAIT_SECONDS = 0.005
#: Growth of the wait after each empty claim. Large, because one notification wakes every worker,
#: and each of them repeats its empty claims.
_WAIT_FACTOR = 4
#: Where notifications are proven to arrive, polling is only a safety net.
LISTENING_WAIT_SECONDS = 10.0
#: One claim takes at most this many.
CLAIM_LIMIT = 1000

#: How often a busy claimer looks for further queues.
FIND_SECONDS = 1.0
#: One read returns at most this many. Of more queues, each read returns the next ones.
FIND_LIMIT = 1000
#: A queue without ready jobs for this long is forgotten: its names may be many and short-lived.
FORGET_SECONDS = 600.0


#: Once for each name and process: during a rolling deploy there are many such jobs.
_UNKNOWN_TASK = RareWarning(
    "this worker does not know the task %s: its jobs are parked until a worker knows it; does "
    "--app name the right app, and does that import the task's module?",
    seconds=inf,
)


class ReadyQueues(Protocol):
    async def ready_queues(self, after: str, limit: int) -> list[str]: ...


class ClaimStore(ReadyQueues, Protocol):
    async def declare_limits(self, limits: Mapping[str, Limit]) -> None: ...

    async def claim(self, request: ClaimRequest, cursors: ClaimCursors) -> list[Attempt]: ...

    async def set_aside_ready(self, queue: str) -> list[SetAside]: ...


def log_set_aside(jobs: Sequence[SetAside], telemetry: Telemetry) -> None:
    for job in jobs:
        telemetry.count("set_aside")
        log.error(
            "job %d was paused, because its row cannot be written: %s; correct the row and resume "
            "the job, or cancel it",
            job.job_id,
            job.reason,
            extra=fields(job=job.job_id),
        )


class ClaimedJobs(Protocol):
    """Receives the claimed jobs: the executor."""

    slots: Slots

    def room(self) -> int: ...

    def hold(
        self, attempts: list[Attempt], valid_until: float, limited: Collection[int]
    ) -> None: ...


class Claimer:
    """Claims while there is room, sleeps while there is none or nothing to claim."""

    def __init__(
        self,
        store: ClaimStore,
        owner: str,
        telemetry: Telemetry,
        settings: WorkerSettings,
        tasks: frozenset[str] | None,
        limits: Mapping[str, Limit],
        queues: ServedQueues,
        executor: ClaimedJobs,
        wakeups: Wakeups,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._owner = owner
        self._telemetry = telemetry
        self._store_part = telemetry.store_health.part("claimer")
        self._queues = queues
        self._executor = executor
        self._slots = executor.slots
        self._wakeups = wakeups
        self._fairness = Fairness(())
        self._cursors = ClaimCursors(asyncio.get_running_loop().time)
        self._tasks = tasks
        #: Configured limits, and those that tasks declare; they are written before the first claim.
        self._prepare = prepare
        self._undeclared = limits
        self._lease_seconds = settings.lease_timeout_seconds
        self._poll_seconds = settings.poll_interval_ms / 1000.0
        self._stopping = False
        self._wait_seconds = FIRST_WAIT_SECONDS
        self._error_wait = 0.0

    def stop(self) -> None:
        """Begin no further claim. A claim that is under way is not interrupted."""
        self._stopping = True
        self._wakeups.claim.set()
        self._store_part.end_wait()

    async def run(self) -> None:
        wakeups = self._wakeups
        with self._store_part:
            while not self._stopping:
                wakeups.claim.clear()
                wakeups.found_nothing = False
                room = self._slots.grant(self._executor.room())
                if room <= 0:
                    self._store_part.leave()
                    await wakeups.claim.wait()
                    continue
                claimed = await self._claim(min(room, CLAIM_LIMIT))
                self._slots.claim_ended(room, claimed)
                wakeups.claimer_is_idle = not claimed
                if claimed:
                    self._wait_seconds = FIRST_WAIT_SECONDS
                    await asyncio.sleep(0)  # the claimed jobs start before the next claim
                elif self._error_wait and not self._stopping:
                    # No wake-up ends this wait: the store would be asked as often as they come.
                    await self._store_part.wait(self._error_wait)
                else:
                    self._queues.look_again()
                    # There may be expired leases to recover.
                    wakeups.sweep_unless_recent()
                    await self._back_off()

    async def _claim(self, room: int) -> int:
        claimed, self._error_wait = 0, 0.0
        named, self._wakeups.named_queues = self._wakeups.named_queues, {}
        try:
            await self._write_limits()
            if await self._queues.refresh(named):
                self._on_queues_read()
        except StoreError as error:
            self._failed(error)
            if self._prepare is not None or self._undeclared:
                return 0
        queues = self._queues.active
        if len(queues) > 1:
            claimed = await self._claim_by_weight(list(queues), room)
        elif queues and not self._stopping:
            claimed = await self._claim_from(queues[0], room, self._slots.starting_soon()) or 0
        self._wakeups.found_nothing = not (claimed or self._error_wait or self._unsure_seconds())
        return claimed

    async def _write_limits(self) -> None:
        if self._prepare is not None:
            await self._prepare()
            self._prepare = None
        if self._undeclared:
            await self._store.declare_limits(self._undeclared)
            self._undeclared = {}

    async def _claim_by_weight(self, busy: list[str], room: int) -> int:
        """Each queue gets its share by weight; unused shares go to queues that had more jobs."""
        claimed = 0
        while busy and claimed < room and not self._stopping:
            full = []
            while busy and claimed < room and not self._stopping:
                queue = self._fairness.first(busy)
                share = self._fairness.share(queue, busy, room - claimed)
                busy.remove(queue)
                starting_soon = self._slots.starting_soon()
                count = await self._claim_from(queue, share, starting_soon)
                if count is None:
                    return claimed
                claimed += count
                self._count_served(queue, count, share, starting_soon)
                if count >= share:
                    full.append(queue)
            busy = full
        return claimed

    def _count_served(self, queue: str, count: int, share: int, starting_soon: int) -> None:
        cursor = self._cursors[queue]
        self._fairness.weights[queue] = cursor.weight
        # A limited queue keeps its credit for jobs that were not claimed for want of slots.
        demanded = min(share, starting_soon) if cursor.is_limited else share
        self._fairness.served(queue, count, demanded)

    def _on_queues_read(self) -> None:
        if not self._queues.active:
            self._store_part.works()  # no claim follows that would report it
        for queue in self._queues.long_empty():
            self._fairness.forget(queue)
            self._cursors.pop(queue, None)

    async def _claim_from(self, queue: str, count: int, starting_soon: int) -> int | None:
        """Returns how many were claimed; None if no other queue could be claimed from either."""
        sent, began = asyncio.get_running_loop().time(), self._telemetry.now()
        cursor = self._cursors[queue]
        request = ClaimRequest(
            owner=self._owner,
            lease_seconds=self._lease_seconds,
            demands=(QueueDemand(queue, count, max(0, count - starting_soon)),),
            tasks=self._tasks,
        )
        try:
            try:
                attempts = await self._store.claim(request, self._cursors)
            except RowRefused:
                if not await self._set_aside(queue):
                    raise
                attempts = await self._store.claim(request, self._cursors)
        except StoreError as error:
            # If the response was lost, the leases of this claim run out by themselves.
            self._failed(error)
            return None if isinstance(error, PASSING) else 0
        if self._telemetry.store_health.is_disturbed:
            self._store_part.works()
        self._telemetry.count("claims")
        self._telemetry.measure("claim_seconds", self._telemetry.now() - began)
        if cursor.unknown_tasks:
            for task in sorted(cursor.unknown_tasks):
                _UNKNOWN_TASK.log(task, key=task, task=task)
            cursor.unknown_tasks.clear()
        if attempts:
            self._telemetry.count("claimed", len(attempts))
            limited = _limited(attempts, cursor) if cursor.is_limited or cursor.keys else ()
            self._executor.hold(attempts, sent + self._lease_seconds, limited)
        return len(attempts)

    def _failed(self, error: StoreError) -> None:
        self._telemetry.count("store_errors", label="claimer")
        self._error_wait = self._store_part.failed(error, self._poll_seconds)
        self._cursors.reset()

    async def _set_aside(self, queue: str) -> bool:
        """Pauses a job that no claim can write: it would hold up its queue. False: no such job."""
        self._cursors.reset()
        jobs = await self._store.set_aside_ready(queue)
        log_set_aside(jobs, self._telemetry)
        return bool(jobs)

    async def _back_off(self) -> None:
        # Room under a limit returns at the end of a lease or with time, without a notification.
        is_limited = any(self._cursors[queue].limit_reached for queue in self._queues.active)
        is_notified = self._wakeups.is_listening and not is_limited
        longest = LISTENING_WAIT_SECONDS if is_notified else self._poll_seconds
        if unsure := self._unsure_seconds():
            longest = min(longest, unsure)
        if self._wakeups.jobs_are_ready:
            self._wakeups.jobs_are_ready = False
            self._wait_seconds = FIRST_WAIT_SECONDS
        try:
            async with asyncio.timeout(min(self._wait_seconds, longest)):
                await self._wakeups.claim.wait()
        except TimeoutError:
            self._wait_seconds = min(self._wait_seconds * _WAIT_FACTOR, longest)

    def _unsure_seconds(self) -> float:
        """Until the next claim, if jobs may have appeared in front of a cursor."""
        waits = [self._cursors[queue].unsure_seconds() for queue in self._queues.active]
        waits.append(self._queues.unsure_seconds())
        return min((wait for wait in waits if wait), default=0.0)


def _limited(attempts: list[Attempt], cursor: ClaimCursor) -> set[int]:
    """Jobs with a limit by queue, tenant or key. A job that once lost its worker is left out: it
    must wait last, so that no other job waits behind it."""
    return {
        attempt.job_id
        for attempt in attempts
        if attempt.lost_attempts == 0 and (cursor.is_limited or attempt.limit_key in cursor.keys)
    }


class ServedQueues:
    """``active`` are the queues of the next claim."""

    def __init__(self, store: ReadyQueues, names: Sequence[str], now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._all = ALL_QUEUES in names
        self._names = frozenset(names)
        self.active = [DEFAULT_QUEUE] if self._all else list(names)
        self._put_off = False
        self._after = ""
        self._due_at = self._not_before = 0.0
        self._is_complete = not self._all
        #: When each queue last had ready jobs, as far as it was read.
        self._seen_at: dict[str, float] = {}
        self._forget_at = 0.0

    def serves(self, queue: str) -> bool:
        """Called in another thread."""
        return self._all or queue in self._names

    def look_again(self) -> None:
        """The last claim found no job: the next one looks for further queues before."""
        self._due_at = 0.0

    def unsure_seconds(self) -> float:
        """Until the next claim, if the last one may have missed a queue; 0: it has not."""
        return 0.0 if self._is_complete else max(0.001, self._not_before - self._now())

    def long_empty(self) -> list[str]:
        """The queues that had no ready jobs for long, each once."""
        now = self._now()
        if now < self._forget_at:
            return []
        self._forget_at = now + FORGET_SECONDS / 10
        empty = [queue for queue, at in self._seen_at.items() if now - at >= FORGET_SECONDS]
        for queue in empty:
            del self._seen_at[queue]
        return empty

    async def refresh(self, named: Collection[str] = ()) -> bool:
        """Called before each claim with the queues that notifications have named since the last
        one. Returns whether the queues were read. After an error the claim is from those that are
        known."""
        if not self._all:
            return False
        if named:
            self.active = list(dict.fromkeys((*self.active, *named)))
            self._seen_at.update(dict.fromkeys(named, self._now()))
        # Once only, or a queue with many notifications would keep the others from being found.
        if (named and not self._put_off) or self._now() < max(self._due_at, self._not_before):
            self._put_off = bool(named)
            self._is_complete = False
            return False
        self._put_off = False
        try:
            await self._find()
        except StoreError:
            self.active = self.active or [DEFAULT_QUEUE]
            self._not_before = self._now() + FIND_SECONDS
            raise
        return True

    async def _find(self) -> None:
        began, after = self._now(), self._after
        self._is_complete = False
        self.active = await self._store.ready_queues(after, FIND_LIMIT)
        is_last = len(self.active) < FIND_LIMIT
        self._after = "" if is_last else self.active[-1]
        self._is_complete = is_last and not after
        ended = self._now()
        cost = ended - began
        self._seen_at.update(dict.fromkeys(self.active, ended))
        self._due_at = ended + FIND_SECONDS
        pause = min(cost / HEAD_SHARE, FIND_SECONDS)
        self._not_before = ended + pause * (cost >= CHEAP_HEAD_SECONDS)
