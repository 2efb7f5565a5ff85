"""`@app.task`: the decorator that an app and a group of tasks have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from freehold.client import JobHandle
from freehold.errors import BadSettings
from freehold.model.job import DEFAULT_QUEUE
from freehold.model.limit import Limit
from freehold.model.names import check_name
from freehold.model.options import Options, tags_of
from freehold.model.policy import LaneOnFailure, OnDrain, OnLeaseExpired, OnStop, Policy
from freehold.model.retry import DEFAULT_RETRY, Retry
from freehold.signature import Signature
from freehold.tasks import (
    Enqueuer,
    Registry,
    Task,
    TaskDefinition,
    check_importable,
    default_name,
    limit_key_of,
)
from freehold.worker.execution.context import Context

P = ParamSpec("P")
R = TypeVar("R")
Isolation = Literal["auto", "process"]
#: A call returns a coroutine, the job the result of it.
AsyncTask: TypeAlias = Task[P, Coroutine[Any, Any, R], JobHandle[R]]


class TaskDecorator(Protocol):
    """Makes a function a task. A first parameter ``ctx: Context`` is not part of its calls."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Task[P, R, JobHandle[R]]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, JobHandle[R]]: ...


class TaskDefiner(Enqueuer[JobHandle]):
    """What an app and a group have in common: the decorator `task`, and the tasks it has made."""

    _default_queue = DEFAULT_QUEUE

    def __init__(self) -> None:
        self.tasks = Registry()

    @property
    def _registry(self) -> Registry:
        return self.tasks

    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...

    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Task[P, R, JobHandle[R]]: ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, JobHandle[R]]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        retry: Retry = DEFAULT_RETRY,
        timeout: float | timedelta | None = None,
        start_by: float | timedelta | None = None,
        tags: tuple[str, ...] = (),
        limit: Limit | None = None,
        isolation: Isolation = "auto",
        on_lease_expired: OnLeaseExpired = "retry",
        on_cancel: OnStop = "auto",
        on_drain: OnDrain = "auto",
        lane_on_failure: LaneOnFailure = "block",
    ) -> TaskDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        retry: Retry = DEFAULT_RETRY,
        timeout: float | timedelta | None = None,
        start_by: float | timedelta | None = None,
        tags: tuple[str, ...] = (),
        limit: Limit | None = None,
        isolation: Isolation = "auto",
        on_lease_expired: OnLeaseExpired = "retry",
        on_cancel: OnStop = "auto",
        on_drain: OnDrain = "auto",
        lane_on_failure: LaneOnFailure = "block",
    ) -> Task[Any, Any, JobHandle] | TaskDecorator:
        """Make a function a task: ``@app.task`` or ``@app.task(queue="mail", ...)``."""
        options = Options(
            queue=self._default_queue if queue is None else queue,
            priority=priority,
            timeout=timeout,
            start_by=start_by,
            tags=tags_of(tags),
        )
        policy = Policy(
            retry=retry,
            on_lease_expired=on_lease_expired,
            on_cancel=on_cancel,
            on_drain=on_drain,
            lane_on_failure=lane_on_failure,
        )
        if isolation not in ("auto", "process"):
            raise BadSettings(f"isolation={isolation!r}: choose auto or process")
        if limit is not None and not isinstance(limit, Limit):
            raise BadSettings(f"limit={limit!r}: give a Limit, as in Limit(3)")
        if limit is not None and not limit:
            raise BadSettings("limit=Limit(): give the number of running jobs, a rate, or both")

        def define(function: Callable[..., Any]) -> Task[Any, Any, JobHandle]:
            task_name = self._task_name(function, name)
            if isolation == "process":
                check_importable(task_name, function)
            signature = Signature(task_name, function)
            definition = TaskDefinition(task_name, function, signature, policy, isolation, limit)
            key = None if limit is None else limit_key_of(task_name)
            task = Task(self, definition, function, replace(options, limit_key=key))
            self._add_task(task)
            return task

        return define if function is None else define(function)

    def _task_name(self, function: Callable[..., Any], name: str | None) -> str:
        return default_name(function) if name is None else check_name("task", name)

    def _add_task(self, task: Task[Any, Any, JobHandle]) -> None:
        self.tasks.add(task)
