"""`@app.cron` and `app.schedule`: the schedules that an app's code declares.

Declaring writes nothing. A worker of the app writes the declarations when it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypedDict, Unpack

from freehold.client import JobHandle
from freehold.errors import BadArguments, BadInput, BadSettings, Refused, StoreError
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.names import check_name
from freehold.model.policy import LaneOnFailure, OnDrain, OnLeaseExpired, OnStop
from freehold.model.retry import Retry
from freehold.model.schedule import CatchUp, Overlap, ScheduleDefinition, define_schedule
from freehold.model.timing import Cron, Timing
from freehold.task_definer import Isolation, TaskDecorator, TaskDefiner
from freehold.tasks import Task, script_name
from freehold.telemetry import log

Writer: TypeAlias = Callable[[], Awaitable[None]]
#: Until declarations are tried again that the store could not take.
_RETRY_SECONDS = 5.0


class TaskOptions(TypedDict, total=False):
    """The options of `@app.task`."""

    name: str | None
    queue: str | None
    priority: int
    retry: Retry
    timeout: float | timedelta | None
    start_by: float | timedelta | None
    tags: tuple[str, ...]
    limit: Limit | None
    isolation: Isolation
    on_lease_expired: OnLeaseExpired
    on_cancel: OnStop
    on_drain: OnDrain
    lane_on_failure: LaneOnFailure


class Declarations:
    """The schedules that code has declared, by tenant and name."""

    def __init__(self, app: str) -> None:
        #: The name of the app, which keeps its schedules apart from those of other apps.
        self.app = check_name("app", app)
        self._schedules: dict[str | None, dict[str, ScheduleDefinition]] = {}

    def add(self, tenant: str | None, definition: ScheduleDefinition) -> None:
        known = self._schedules.setdefault(tenant, {})
        # A module that is imported twice (a reload, __main__) declares the same again.
        if known.get(definition.name, definition) != definition:
            raise BadSettings(
                f"two schedules are called {definition.name}: give one of them another name"
            )
        known[definition.name] = definition

    def of(self, tenant: str | None) -> list[ScheduleDefinition]:
        return list(self._schedules.get(tenant, {}).values())

    @property
    def tenants(self) -> set[str]:
        return {name for name in self._schedules if name is not None}

    @contextlib.asynccontextmanager
    async def written(self, writers: Sequence[Writer]) -> AsyncIterator[None]:
        """Written at once, or as soon as the store can be reached: a worker starts without it."""
        waiting = [writer for writer in writers if not await _is_written(writer)]
        writing = asyncio.create_task(_write_later(waiting)) if waiting else None
        try:
            yield
        finally:
            if writing is not None:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)


async def _is_written(writer: Writer) -> bool:
    try:
        await writer()
    except StoreError as error:
        log.debug("what this process declares could not be written yet: %s", error)
        return False
    return True


async def _write_later(writers: Sequence[Writer]) -> None:
    while writers:
        await asyncio.sleep(_RETRY_SECONDS)
        writers = [writer for writer in writers if not await _is_decided(writer)]


async def _is_decided(writer: Writer) -> bool:
    """Whether it was written, or refused, which does not keep the other writers from writing."""
    try:
        return await _is_written(writer)
    except (BadInput, Refused) as error:
        log.error("what this process declares is not written: %s", error)
        return True


class ScheduleDeclarer(TaskDefiner):
    """What an app and a group have beside their tasks: `cron` and `schedule`."""

    def _declare(self, definition: ScheduleDefinition) -> None:
        raise NotImplementedError

    def cron(
        self,
        expression: str,
        /,
        *,
        zone: str = "UTC",
        schedule: str | None = None,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "last",
        within: float | timedelta | None = None,
        jitter: float | timedelta = 0.0,
        ends_at: datetime | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskDecorator:
        """A task and its schedule in one: ``@app.cron("0 7 * * mon-fri", zone="Europe/Berlin")``.

        The function has no parameters, or only ``ctx``. ``schedule`` is the name of the schedule,
        by default that of the task. ``options`` are those of `task`.
        """
        timing = Cron(expression, zone)
        make_task = self.task(**options)

        def declare(function: Callable[..., Any]) -> Task[Any, Any, JobHandle]:
            task: Task[Any, Any, JobHandle] = make_task(function)
            self.schedule(
                task.name if schedule is None else schedule,
                timing,
                _without_arguments(task),
                overlap=overlap,
                catch_up=catch_up,
                within=within,
                jitter=jitter,
                ends_at=ends_at,
            )
            return task

        return declare

    def schedule(
        self,
        name: str,
        timing: Timing,
        job: NewJob,
        *,
        overlap: Overlap = "skip",
        catch_up: CatchUp = "last",
        within: float | timedelta | None = None,
        jitter: float | timedelta = 0.0,
        ends_at: datetime | None = None,
    ) -> None:
        """Declare that ``job``, a prepared one, is enqueued at these times. A worker of this app
        writes it when it starts."""
        definition = define_schedule(
            name,
            timing,
            job,
            overlap=overlap,
            catch_up=catch_up,
            within=within,
            jitter=jitter,
            ends_at=ends_at,
        )
        self._declare(definition)


def _without_arguments(task: Task[Any, Any, JobHandle]) -> NewJob:
    try:
        return task.prepare()
    except BadArguments as error:
        raise BadArguments(
            f"{error}: @app.cron is for functions without parameters; make it a task, and give "
            "its arguments with app.schedule(name, Cron(...), task.prepare(...))"
        ) from error


def calling_module(depth: int) -> str:
    """The name of the module that makes an app: the default of the app's name."""
    module = str(sys._getframe(depth + 1).f_globals.get("__name__", "app"))
    return (script_name() or module) if module == "__main__" else module
