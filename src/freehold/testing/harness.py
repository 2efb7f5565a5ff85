"""Harness: an app whose jobs are in memory and on virtual time during a test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

from freehold.app import Freehold
from freehold.client import Client
from freehold.clock import VirtualClock, system_micros
from freehold.errors import BadInput, JobNotFound
from freehold.lifespan import NOT_OPENED, enter_lifespan, opened_deps
from freehold.model.job import Job
from freehold.model.state import State
from freehold.model.timestamps import micros_of
from freehold.store.open import open_memory
from freehold.telemetry import Telemetry
from freehold.testing.attempts import Attempts
from freehold.testing.calls import AnyTask, Expected, arguments_of, described
from freehold.testing.inline import out_of_loop
from freehold.testing.recording_client import RecordedCall, RecordingClient
from freehold.testing.report import RunReport
from freehold.testing.run import LIMIT_SECONDS, HarnessRun, Until, all_jobs, next_tick_micros
from freehold.testing.virtual_loop import VirtualLoop
from freehold.worker.sweeper import FIRE_BATCH


class Harness:
    """``with Harness(app) as queue:`` gives the app a store in memory, until the block ends.

    No job runs until `run`, or until the result of a job is asked for. `run` runs the real worker
    on the due jobs, in this process and thread.
    Time is virtual and begins at ``start``, by default now. Other settings are those of a worker:
    ``lease_timeout_seconds``, ``concurrency``. ``deps`` is the ``ctx.deps`` of handlers, in place
    of what the lifespan of the app would open.
    """

    def __init__(
        self,
        app: Freehold,
        *,
        seed: int = 0,
        start: datetime | None = None,
        deps: Any = NOT_OPENED,
        **settings: Any,
    ) -> None:
        self._app = app
        self._given_deps = deps
        self._chance = random.Random(seed).random
        self._settings = {"history_days": 36_500.0, **settings}
        self.clock = VirtualClock(system_micros() if start is None else micros_of(start))
        self.telemetry = Telemetry()
        self._before: Client | None = None

    def __enter__(self) -> Harness:
        self._database = open_memory(self.clock)
        self._deps, self._lifespan = self._given_deps, AsyncExitStack()
        self._client = RecordingClient(
            self._database,
            lambda: self.clock.micros / 1e6,
            self._app.tasks,
            run=lambda seconds: self.run(seconds=seconds),
        )
        self._runner = asyncio.Runner(loop_factory=lambda: VirtualLoop(self.clock))
        self._before = self._app._swap_client(self._client)
        declared = self._app._declarations
        self._client.store.declare_schedules(declared.app, declared.of(self._app._tenant_name))
        return self

    def __exit__(self, *_: object) -> None:
        self._app._swap_client(self._before)
        with out_of_loop():
            self._runner.run(self._lifespan.aclose())
            self._runner.close()
        self._database.close()

    # -- enqueued calls ----------------------------------------------------------------------

    @property
    def calls(self) -> list[RecordedCall]:
        """All calls that were enqueued in this harness, run or not, oldest first."""
        calls = self._client.calls
        stored = self._client.store.read([call.id for call in calls])
        return [call for call in calls if call.id in stored]  # without those rolled back

    def enqueued(self, task: AnyTask) -> list[dict[str, Any]]:
        """The arguments of every call of a task, oldest first."""
        return [arguments_of(task, c.job) for c in self.calls if c.job.task == task.name]

    def assert_enqueued(self, task: AnyTask, /, *args: Any, **kwargs: Any) -> list[Job]:
        """Asserts that the task was enqueued with these arguments; returns its jobs.

        Arguments that are left out may have any value. Options are given as for enqueueing:
        ``assert_enqueued(send.using(queue="bulk", delay=60), "a@example.org")``.
        """
        expected, fitting = self._find(task, args, kwargs)
        if not fitting:
            raise AssertionError(
                f"{task.name} was not enqueued with {expected}. Enqueued of it:\n"
                + self._shown(task)
            )
        return [self.job(call.id) for call in fitting]

    def assert_not_enqueued(self, task: AnyTask, /, *args: Any, **kwargs: Any) -> None:
        """The opposite; ``assert_not_enqueued(send)`` allows no call of it at all."""
        expected, fitting = self._find(task, args, kwargs)
        if fitting:
            raise AssertionError(
                f"{task.name} was enqueued with {expected}. Enqueued of it:\n" + self._shown(task)
            )

    def _find(
        self, task: AnyTask, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Expected, list[RecordedCall]]:
        expected = Expected(task, self._app.tasks.get(task.name), args, kwargs)
        return expected, [call for call in self.calls if expected.fits(call)]

    def _shown(self, task: AnyTask) -> str:
        return described(task, self._app.tasks.get(task.name), self.calls)

    # -- jobs --------------------------------------------------------------------------------

    def job(self, job_id: int) -> Job:
        """A job in its present state."""
        jobs = self._client.store.read([job_id])
        if job_id not in jobs:
            raise JobNotFound(f"there is no job {job_id} in this harness")
        return jobs[job_id]

    def jobs(self, task: AnyTask | None = None, *states: State) -> list[Job]:
        """All jobs, or those of a task or in some states; oldest first."""
        name = None if task is None else task.name
        return all_jobs(self._client.store, task=name, states=frozenset(states))

    # -- time and runs -----------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self._client.store.now()

    def advance(self, by: float | timedelta) -> None:
        """Advances the time without running a job, as if all workers were busy. Schedules that
        fall due meanwhile make their jobs."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        if seconds < 0:
            raise BadInput(f"advance({by!r}): time cannot go backwards")
        end = self.clock.micros + round(seconds * 1e6)
        store = self._client.store
        while (due := next_tick_micros(store, self.clock)) is not None and due <= end:
            self.clock.micros = max(self.clock.micros, due)
            store.fire_schedules(FIRE_BATCH, self._chance())
        self.clock.micros = end

    def run(
        self,
        *,
        scheduled: bool = False,
        seconds: float | None = None,
        raise_errors: bool = False,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> RunReport:
        """Runs the due jobs with their retries, however long they back off.

        ``scheduled``: also jobs that are scheduled for later; the clock advances to them.
        ``seconds``: all jobs that become due within this time; the clock advances by all of it.
        ``raise_errors``: the first exception of a handler ends the run and is raised here.
        ``limit_seconds``: the virtual time that a handler may take.
        """
        before = {job.id: job for job in self.jobs()}
        retried = self.telemetry.total("retried")
        end = None if seconds is None else self.clock.micros + round(seconds * 1e6)
        attempts = Attempts(raise_errors)
        run = HarnessRun(
            self._database,
            self._app.tasks,
            self.clock,
            attempts,
            chance=self._chance,
            telemetry=self.telemetry,
            settings=self._settings,
        )
        with out_of_loop():
            self._runner.run(self._with_deps(run.work(Until(scheduled, end), limit_seconds)))
        if attempts.fatal is not None:
            raise attempts.fatal
        changed = tuple(job for job in self.jobs() if before.get(job.id) != job)
        retried = self.telemetry.total("retried") - retried
        return RunReport(changed, attempts.count, retried, tuple(attempts.errors))

    async def _with_deps(self, work: Awaitable[None]) -> None:
        """The lifespan of the app is opened by the first run, and closed with the harness."""
        lifespan = self._app.tasks.lifespan
        if self._deps is NOT_OPENED and lifespan is not None:
            self._deps = await enter_lifespan(self._lifespan, lifespan)
        opened_deps.set(self._deps)
        await work

    async def arun(self, **options: Any) -> RunReport:
        """The same inside a running event loop, which is blocked meanwhile."""
        return self.run(**options)
