"""`FreeholdTask`: a task of Django with the options that Freehold has beyond Django's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from freehold.contrib.django.compat import DEFAULT_TASK_BACKEND_ALIAS, Task, task_backends
from freehold.model.limit import Limit
from freehold.model.retry import Retry
from freehold.model.waiting import Debounce, Throttle, Unique

#: Options of one job, which `using` changes too.
JOB_OPTIONS = (
    "max_attempts",
    "timeout",
    "start_by",
    "target",
    "limit_key",
    "unique_key",
    "idempotency_key",
    "tags",
    "meta",
    "unique",
    "debounce",
    "throttle",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeholdTask(Task):
    """Made by `task`, and by Django's own decorator."""

    retry: Retry | None = None
    limit: Limit | None = None
    isolation: str = "auto"
    max_attempts: int | None = None
    timeout: float | timedelta | None = None
    start_by: datetime | timedelta | float | None = None
    target: str | None = None
    limit_key: str | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    tags: tuple[str, ...] | None = None
    meta: Mapping[str, Any] | None = dataclasses.field(default=None, hash=False)
    unique: Unique | None = None
    debounce: Debounce | None = None
    throttle: Throttle | None = None

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> FreeholdTask:
        """The same task with other options; ``options`` are those of `freehold.Task.using`."""
        if unknown := options.keys() - set(JOB_OPTIONS):
            raise TypeError(
                f"using() has no option {', '.join(sorted(unknown))}; Django's options are "
                f"priority, queue_name, run_after and backend, Freehold's {', '.join(JOB_OPTIONS)}"
            )
        changes = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            **options,
        }
        given = {name: value for name, value in changes.items() if value is not None}
        return dataclasses.replace(self, **given)

    def enqueue_many(self, calls: Any) -> list[Any]:
        """Store many jobs in few statements: all of them or none. ``calls``: for each job a
        sequence of arguments, or a mapping of arguments by name."""
        return list(self.get_backend().enqueue_many([(self, *_split(call)) for call in calls]))


def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Django's decorator with Freehold's options: ``@task(retry=Retry(max_attempts=3))``.

    The decorator of Django 6.1 and of `django-tasks` takes them too, that of 6.0 does not. Another
    backend than Freehold's, as in tests, gets the task without them.
    """

    if unknown := options.keys() - {"retry", "limit", "isolation", *JOB_OPTIONS}:
        raise TypeError(
            f"@task has no option {', '.join(sorted(unknown))}; Django's options are priority, "
            "queue_name, backend and takes_context, Freehold's retry, limit, isolation, "
            f"{', '.join(JOB_OPTIONS)}"
        )

    def define(function: Callable[..., Any]) -> Any:
        kind = task_backends[backend].task_class
        return kind(
            func=function,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **(options if issubclass(kind, FreeholdTask) else {}),
        )

    return define if function is None else define(function)


def _split(call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(call, Mapping):
        return (), dict(call)
    if isinstance(call, list | tuple):
        return tuple(call), {}
    raise TypeError(
        f"enqueue_many got {call!r}: give a list or tuple of arguments for each job, such as "
        f"[{call!r}], or a mapping of arguments by name"
    )


def job_options(task: Any) -> dict[str, Any]:
    """The options of a job that this task gives. A task of another class has none."""
    values = {name: getattr(task, name, None) for name in JOB_OPTIONS}
    return {name: value for name, value in values.items() if value is not None}


def with_fields(task: Any, **changes: Any) -> Any:
    """A copy with other fields, which is not validated: the settings may have changed since the job
    was stored."""
    copy = object.__new__(type(task))
    for field in dataclasses.fields(task):
        value = changes.get(field.name, getattr(task, field.name))
        object.__setattr__(copy, field.name, value)
    return copy


def module_path(function: Callable[..., Any]) -> str:
    """The name of a task, in Django and in the store."""
    return f"{function.__module__}.{function.__qualname__}"
