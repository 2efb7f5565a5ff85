"""Around the handlers of a worker: Django's connections, and the signal of a task's end."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections, reset_queries

from freehold.app import Freehold
from freehold.contrib.django.compat import task_backends, task_finished
from freehold.contrib.django.results import find_task, result_of
from freehold.extensions import AnyContext, EndedAttempt, Extension
from freehold.model.state import FINAL, State
from freehold.operator import SHOWN_LIMIT
from freehold.worker.execution.context import Context


class DatabaseConnections(Extension):
    """Does for each attempt what Django does for each request: a connection that is broken or too
    old is closed, before the handler and after it, in the handler's own thread.

    For an app of Freehold without the task backend: ``app.extend(DatabaseConnections(app))``.
    """

    def __init__(self, app: Freehold) -> None:
        self._app = app

    def attempt(self, ctx: Context) -> AnyContext:
        function = self._app.tasks.get(ctx.job.task).definition.function
        return _around_coroutine() if inspect.iscoroutinefunction(function) else _around_call()


@contextmanager
def _around_call() -> Iterator[None]:
    _reset()
    try:
        yield
    finally:
        _reset()


@asynccontextmanager
async def _around_coroutine() -> AsyncIterator[None]:
    """The blocking parts of a coroutine (the ORM) run in a thread of its own, as in a request by
    ASGI. That thread ends with the attempt, and its connections with it."""
    async with ThreadSensitiveContext():
        try:
            yield
        finally:
            await sync_to_async(connections.close_all)()


def _reset() -> None:
    reset_queries()
    close_old_connections()


class FailedTask(Exception):
    """In the log of a task that has failed: its error, as the worker has stored it."""


class FinishedSignal(Extension):
    """Sends `task_finished` once a job has ended for good: also if its worker was lost, and never
    for an attempt that is followed by another."""

    def __init__(self, app: Freehold, alias: str) -> None:
        self._app = app
        self._alias = alias

    def ended(self, attempt: EndedAttempt) -> Any:
        if attempt.state not in FINAL or find_task(attempt.job.task) is None:
            return
        store = self._app._client.store
        job = store.read([attempt.job.job_id]).get(attempt.job.job_id)
        if job is None:
            return
        result = result_of(job, store.events(job.id, SHOWN_LIMIT), self._alias)
        if attempt.state is State.SUCCEEDED:
            self._send(result)
            return
        try:
            raise FailedTask(_shown(attempt))
        except FailedTask:  # Django logs the exception that is being handled
            self._send(result)

    def _send(self, result: Any) -> None:
        task_finished.send_robust(type(task_backends[self._alias]), task_result=result)


class WorkerSignal(FinishedSignal):
    """In a thread of a worker, whose connections are closed as those of a handler."""

    def ended(self, attempt: EndedAttempt) -> None:
        with _around_call():
            super().ended(attempt)


def _shown(attempt: EndedAttempt) -> str:
    error = attempt.outcome.error
    if error is None:
        return attempt.reason or str(attempt.outcome.kind)
    return error.trace or f"{error.type}: {error.message}"
