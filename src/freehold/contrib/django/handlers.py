"""The handler of a task of Django: its call, with context and signal, as a worker runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.contrib.django.compat import (
    TaskContext,
    normalize_json,
    task_backends,
    task_started,
)
from freehold.contrib.django.freehold_task import module_path
from freehold.contrib.django.options import BackendOptions
from freehold.contrib.django.results import find_task, result_of
from freehold.errors import JobNotFound
from freehold.model.history import Event
from freehold.model.job import Job
from freehold.operator import SHOWN_LIMIT
from freehold.tasks import Task
from freehold.worker.execution.context import Context

#: A child process looks for handlers there: see `process_handlers`.
HANDLER_MODULE = "freehold.contrib.django.process_handlers"


def defined_task(
    app: Freehold, alias: str, options: BackendOptions, task: Any, *, blocking: bool = False
) -> Task[Any, Any, JobHandle]:
    """The task of the app for a task of Django, which is defined when it is first needed.
    ``blocking``: a coroutine function, too, runs as a plain function, in a child process never."""
    name = module_path(task.func)
    if name in app.tasks:
        return app.tasks.get(name)
    first = find_task(name) or task  # with the options of the decorator, not those of `using`
    handler = handler_of(app, alias, first, blocking)
    handler.__module__ = HANDLER_MODULE
    handler.__qualname__ = f"{alias}/{name}".replace(".", ":")
    handler.__doc__ = first.func.__doc__
    define = app.task(
        name=name,
        queue=first.queue_name,
        retry=getattr(first, "retry", None) or options.retry,
        timeout=options.timeout,
        limit=getattr(first, "limit", None),
        isolation="auto" if blocking else getattr(first, "isolation", "auto"),
    )
    defined: Task[Any, Any, JobHandle] = define(handler)
    return defined


def handler_of(app: Freehold, alias: str, task: Any, blocking: bool) -> Callable[..., Any]:
    """A coroutine function stays one, so that it runs on the worker's event loop."""

    async def awaited(
        *, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None, ctx: Context
    ) -> Any:
        store, job_id = app._client.awaited, ctx.job.job_id
        jobs = await store.read([job_id])
        events = await store.events(job_id, SHOWN_LIMIT) if _may_have_events(task, ctx) else []
        context = _started(jobs.get(job_id), events, alias, job_id)
        return normalize_json(await task.acall(*_given(task, context, args), **(kwargs or {})))

    def called(
        *, args: list[Any] | None = None, kwargs: dict[str, Any] | None = None, ctx: Context
    ) -> Any:
        store, job_id = app._client.store, ctx.job.job_id
        jobs = store.read([job_id])
        events = store.events(job_id, SHOWN_LIMIT) if _may_have_events(task, ctx) else []
        context = _started(jobs.get(job_id), events, alias, job_id)
        return normalize_json(task.call(*_given(task, context, args), **(kwargs or {})))

    return awaited if inspect.iscoroutinefunction(task.func) and not blocking else called


def _may_have_events(task: Any, ctx: Context) -> bool:
    """Most attempts are the first one of their job, and then nothing went wrong before it."""
    return bool(task.takes_context or ctx.job.number > 1 or ctx.job.lost_attempts)


def _started(job: Job | None, events: list[Event], alias: str, job_id: int) -> Any:
    """The context of the attempt, after its signal."""
    result = None if job is None else result_of(job, events, alias)
    if result is None:
        raise JobNotFound(f"there is no job {job_id} any more: it was deleted, by hand or by age")
    task_started.send_robust(type(task_backends[alias]), task_result=result)
    return TaskContext(task_result=result)


def _given(task: Any, context: Any, args: list[Any] | None) -> list[Any]:
    return [context, *(args or [])] if task.takes_context else list(args or [])
