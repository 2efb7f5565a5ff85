"""One run: real workers, one after another, until no job is left that should run now.

A worker runs until it is idle. Then the clock is moved to the time when the next job is due, and
another worker runs. So days of waiting take no time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from freehold.clock import VirtualClock
from freehold.exit_codes import EXIT_CRASHED
from freehold.model.job import DEFAULT_QUEUE, Job
from freehold.model.state import Stage, State
from freehold.model.timestamps import micros_of
from freehold.store.database import Database
from freehold.store.store import Store
from freehold.store.types import PAGE_LIMIT, JobFilter
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.testing.attempts import Attempts, StillBusy
from freehold.testing.worker import virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker

LIMIT_SECONDS = 4 * 3600.0
_WAITING = (Stage.SCHEDULED, Stage.BACKOFF)


def all_jobs(store: Store, **filter: Any) -> list[Job]:
    """Oldest first."""
    found: list[Job] = []
    before: int | None = None
    while True:
        page = store.page(JobFilter(limit=PAGE_LIMIT, before=before, **filter))
        found += page.jobs
        before = page.next
        if before is None:
            return found[::-1]


def next_tick_micros(store: Store, clock: VirtualClock) -> int | None:
    """When the next schedule falls due."""
    seconds = store.sweep_check(()).schedule_seconds
    return None if seconds is None else clock.micros + round(seconds * 1e6)


@dataclass(frozen=True, slots=True)
class Until:
    """The end of a run: the end of all retries, of all scheduled jobs, or a time."""

    scheduled: bool
    end_micros: int | None

    def next_micros(self, waiting: list[Job], tick: int | None) -> int | None:
        """The time at which the run continues; None: it has ended. Only a run until a time goes on
        to the next tick: schedules have no end."""
        times = [micros_of(job.run_at) for job in waiting]
        if self.end_micros is not None:
            times += [] if tick is None else [tick]
            return min((each for each in times if each <= self.end_micros), default=None)
        if not waiting:
            return None
        due = min(times)
        # A job with an attempt waits for its retry.
        return due if self.scheduled or any(job.attempt > 0 for job in waiting) else None


class HarnessRun:
    """Runs workers on one database."""

    def __init__(
        self,
        database: Database,
        tasks: Registry,
        clock: VirtualClock,
        attempts: Attempts,
        *,
        chance: Callable[[], float],
        telemetry: Telemetry,
        settings: Mapping[str, Any],
    ) -> None:
        self._database = database
        self._store = Store(database.session())
        self._tasks = attempts.watched(tasks)
        self._clock = clock
        self._attempts = attempts
        self._chance = chance
        self._telemetry = telemetry
        self._settings = settings

    async def work(self, until: Until, limit_seconds: float) -> None:
        while self._attempts.fatal is None:
            queues = self._queues()
            await self._until_idle(self._worker(queues), limit_seconds)
            if self._queues() - queues:
                continue  # a handler has enqueued into a queue that the worker did not serve
            tick = next_tick_micros(self._store, self._clock)
            due = until.next_micros(self._waiting(), tick)
            if due is None:
                break
            self._clock.micros = max(self._clock.micros, due)
        if until.end_micros is not None and self._attempts.fatal is None:
            self._clock.micros = max(self._clock.micros, until.end_micros)

    def _queues(self) -> set[str]:
        known = {task.options.queue for task in self._tasks}
        return {DEFAULT_QUEUE, *known, *(queue.name for queue in self._store.queues(bound=1))}

    def _waiting(self) -> list[Job]:
        queued = all_jobs(self._store, states=frozenset({State.QUEUED}))
        return [job for job in queued if job.stage in _WAITING]

    def _worker(self, queues: set[str]) -> Worker:
        settings = {"queues": tuple(sorted(queues)), "until_idle": True, **self._settings}
        worker = virtual_worker(
            self._database,
            self._tasks,
            WorkerSettings(**settings),
            chance=self._chance,
            owner="worker",
            telemetry=self._telemetry,
        )
        self._attempts.worker = worker
        return worker

    async def _until_idle(self, worker: Worker, limit_seconds: float) -> None:
        running = asyncio.create_task(worker.run(), name="worker")
        done, _ = await asyncio.wait({running}, timeout=limit_seconds)
        if not done:
            attempts = (lease.attempt for lease in worker.leases.all())
            names = ", ".join(f"{each.job_id} of {each.task}" for each in attempts)
            self._attempts.end_run(
                StillBusy(
                    f"still running after {limit_seconds:g} s of virtual time: job {names}. Does "
                    "it wait for something that never happens? Give it a timeout, or "
                    "run(limit_seconds=...)"
                )
            )
            worker.stop_now()
        if await running == EXIT_CRASHED:
            raise RuntimeError("the worker crashed: see the log")
