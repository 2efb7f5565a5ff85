"""Wraps handlers, so that a run knows their calls and exceptions."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from freehold.errors import FreeholdError
from freehold.model.handler_exceptions import AttemptEnded, HandlerException
from freehold.signature import CONTEXT_PARAMETER
from freehold.tasks import Registry, Task
from freehold.testing.report import HandlerError
from freehold.worker.execution.context import Context
from freehold.worker.worker import Worker

Handler: TypeAlias = Callable[..., Any]
ATTEMPTS_LIMIT = 10_000


class StillBusy(FreeholdError):
    """A run did not end."""


class Attempts:
    """Counts calls of handlers and keeps their exceptions. One that must end the run drains the
    worker."""

    def __init__(self, raise_errors: bool) -> None:
        self._raise_errors = raise_errors
        self.count = 0
        self.errors: list[HandlerError] = []
        self.fatal: BaseException | None = None
        self.worker: Worker | None = None

    def end_run(self, error: BaseException) -> None:
        if self.fatal is None:
            self.fatal = error
        if self.worker is not None:
            self.worker.drain()

    def began(self, ctx: Context) -> None:
        self.count += 1
        if self.count > ATTEMPTS_LIMIT:
            self.end_run(
                StillBusy(
                    f"handlers were called {ATTEMPTS_LIMIT:,} times and there is still work, last "
                    f"job {ctx.job.job_id} of {ctx.job.task}: does it enqueue itself again and "
                    "again? Use run(seconds=...) to stop by time"
                )
            )

    def raised(self, ctx: Context, error: BaseException) -> None:
        if isinstance(error, HandlerException | asyncio.CancelledError | AttemptEnded):
            return  # an outcome or a stop, which the job's state shows
        attempt = ctx.job
        self.errors.append(HandlerError(attempt.job_id, attempt.task, attempt.number, error))
        # KeyboardInterrupt and the exception of pytest.fail are for the test.
        if self._raise_errors or not isinstance(error, Exception):
            self.end_run(error)

    def watched(self, tasks: Registry) -> Registry:
        """The same tasks with wrapped handlers. All run in this process, where the mocks are."""
        registry = Registry()
        registry.extensions, registry.overrides = tasks.extensions, tasks.overrides
        for task in tasks:
            definition = task.definition
            signature = copy.copy(definition.signature)
            signature.wants_context = signature.needs_context = True
            wrap = _awaited if definition.is_coroutine else _called
            function = wrap(self, definition.function, definition.signature.wants_context)
            definition = replace(
                definition, function=function, signature=signature, isolation="auto"
            )
            registry.add(Task(task._app, definition, function, task.options))
        return registry


def _called(attempts: Attempts, function: Handler, wants_context: bool) -> Handler:
    @functools.wraps(function)
    def handler(*args: Any, ctx: Context, **kwargs: Any) -> Any:
        attempts.began(ctx)
        try:
            return function(*args, **_given(kwargs, ctx, wants_context))
        except BaseException as error:
            attempts.raised(ctx, error)
            raise

    return handler


def _awaited(attempts: Attempts, function: Handler, wants_context: bool) -> Handler:
    @functools.wraps(function)
    async def handler(*args: Any, ctx: Context, **kwargs: Any) -> Any:
        attempts.began(ctx)
        try:
            return await function(*args, **_given(kwargs, ctx, wants_context))
        except BaseException as error:
            attempts.raised(ctx, error)
            raise

    return handler


def _given(kwargs: dict[str, Any], ctx: Context, wants_context: bool) -> dict[str, Any]:
    return {**kwargs, CONTEXT_PARAMETER: ctx} if wants_context else kwargs
