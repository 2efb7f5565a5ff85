"""Groups of tasks and schedules that are defined apart from an app, and included later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freehold.client import JobHandle
from freehold.errors import BadSettings
from freehold.model.job import DEFAULT_QUEUE, NewJob
from freehold.model.names import check_name
from freehold.model.plural import count
from freehold.model.schedule import ScheduleDefinition
from freehold.schedules import ScheduleDeclarer
from freehold.tasks import Registry, Task


class TaskGroup(ScheduleDeclarer):
    """Tasks that are defined before there is an app, as in a module that several programs use.

    ``app.include(group)`` adds them to an app, with their schedules, also those that are defined
    afterwards. ``queue`` is the default of their queues. With a ``prefix`` their names are
    ``prefix.function`` in place of ``module.function``.
    """

    def __init__(self, *, queue: str = DEFAULT_QUEUE, prefix: str | None = None) -> None:
        super().__init__()
        self._default_queue = check_name("queue", queue)
        self._prefix = None if prefix is None else check_name("prefix", prefix)
        self._app: ScheduleDeclarer | None = None
        self._schedules: list[ScheduleDefinition] = []

    def _task_name(self, function: Callable[..., Any], name: str | None) -> str:
        if self._prefix is None:
            return super()._task_name(function, name)
        own = function.__qualname__.replace(".<locals>", "") if name is None else name
        return check_name("task", f"{self._prefix}.{own}")

    def _add_task(self, task: Task[Any, Any, JobHandle]) -> None:
        super()._add_task(task)
        if self._app is not None:
            self._app.tasks.add(task)

    def _declare(self, definition: ScheduleDefinition) -> None:
        self._schedules.append(definition)
        if self._app is not None:
            self._app._declare(definition)

    def _attach(self, app: ScheduleDeclarer) -> None:
        """A task enqueues into the store of its app: with two apps it would have to choose."""
        if self._app is not None and self._app is not app:
            raise BadSettings(
                f"{self!r} belongs to another app already: a group is included in one app; make "
                "one for each app, in a function that defines its tasks"
            )
        for task in self.tasks:
            app.tasks.check(task)
        for definition in self._schedules:
            app._declare(definition)
        for task in self.tasks:
            app.tasks.add(task)
        self._app = app

    def _included_in(self, task: str) -> ScheduleDeclarer:
        if self._app is None:
            raise BadSettings(
                f"task {task} is in a group that no app includes: call app.include(group) first"
            )
        return self._app

    @property
    def _registry(self) -> Registry:
        return super()._registry if self._app is None else self._app._registry

    def _submit(self, job: NewJob, connection: Any = None, tenant: str | None = None) -> JobHandle:
        return self._included_in(job.task)._submit(job, connection, tenant)

    async def _asubmit(
        self, job: NewJob, connection: Any = None, tenant: str | None = None
    ) -> JobHandle:
        return await self._included_in(job.task)._asubmit(job, connection, tenant)

    def __repr__(self) -> str:
        prefix = "" if self._prefix is None else f" {self._prefix}"
        return f"<TaskGroup{prefix} with {count(len(self.tasks.names), 'task')}>"
