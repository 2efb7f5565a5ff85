"""`FreeholdBackend`: Django's Tasks, stored and run by Freehold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.utils import timezone

from freehold.app import Freehold
from freehold.contrib.django import checks
from freehold.contrib.django.backend_store import BackendStore, known_tasks, store_of
from freehold.contrib.django.compat import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    normalize_json,
    task_backends,
    task_enqueued,
)
from freehold.contrib.django.freehold_task import FreeholdTask, job_options, module_path
from freehold.contrib.django.options import read_options
from freehold.contrib.django.results import RUN_AFTER, new_result, result_of
from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.model.names import check_name

#: The largest id that a job can have.
_LARGEST_ID = 2**63 - 1


class FreeholdBackend(BaseTaskBackend):
    """``TASKS = {"default": {"BACKEND": "freehold.contrib.django.FreeholdBackend"}}``.

    `enqueue` inside of ``transaction.atomic()`` is part of that transaction, where the jobs are in
    the same database.
    """

    task_class = FreeholdTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._read_options = read_options(self.options)

    @property
    def store(self) -> BackendStore:
        return store_of(self.alias, self._read_options)

    @property
    def app(self) -> Freehold:
        """The app with the tasks of this backend: its operator, schedules, extensions."""
        return self.store.app

    # -- tasks -------------------------------------------------------------------------------

    def validate_task(self, task: Any) -> None:
        super().validate_task(task)
        try:
            check_name("queue", task.queue_name)
        except BadInput as error:
            raise InvalidTask(str(error)) from None
        known_tasks.setdefault(module_path(task.func), task)

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Store a job. It exists if and only if the caller's transaction commits."""
        return self.enqueue_many([(task, args, kwargs)])[0]

    # `aenqueue` and `aget_result` are those of Django. They call the methods here in the thread
    # that has the caller's connection, and so its transaction.

    def enqueue_many(self, calls: Iterable[tuple[Any, Any, Any]]) -> list[Any]:
        """Store many jobs in few statements: all of them or none."""
        prepared = [self._prepared(*call) for call in calls]
        handles = self.store.enqueue([job for _, _, job in prepared])
        results = []
        for (task, call, _), handle in zip(prepared, handles, strict=True):
            if handle.created and handle.created_at is not None:
                result = new_result(task, self.alias, handle.id, handle.created_at, call)
                task_enqueued.send_robust(type(self), task_result=result)
            else:  # a job with the same key, which may be deleted by now, or of another app
                result = self._find(handle.id) or new_result(
                    task, self.alias, handle.id, handle.created_at, call
                )
            results.append(result)
        return results

    def _prepared(self, task: Any, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any], NewJob]:
        self.validate_task(task)
        call = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        options = job_options(task)
        run_at = task.run_after
        if run_at is not None:
            run_at = run_at if settings.USE_TZ else timezone.make_aware(run_at)
            options["meta"] = {**options.get("meta", {}), RUN_AFTER: run_at.isoformat()}
        defined = self.store.task(task)
        using = defined.using(
            queue=task.queue_name, priority=int(task.priority), run_at=run_at, **options
        )
        return task, call, using.prepare(**call)

    # -- results -----------------------------------------------------------------------------

    def get_result(self, result_id: str) -> Any:
        text = str(result_id)
        if text.isascii() and text.isdigit() and 0 < int(text) <= _LARGEST_ID:
            result = self._find(int(text))
            if result is not None:
                return result
        raise TaskResultDoesNotExist(result_id)

    def _find(self, job_id: int) -> Any | None:
        found = self.store.read(job_id)
        return None if found is None else result_of(*found, self.alias)

    def check(self, **kwargs: Any) -> Sequence[Any]:
        return checks.check_backend(self)


def backend_of(alias: str) -> FreeholdBackend:
    """The backend with this name in TASKS. Raises BadInput if it is not Freehold's."""
    backend = task_backends[alias]
    if not isinstance(backend, FreeholdBackend):
        raise BadInput(
            f"TASKS[{alias!r}] is {type(backend).__module__}.{type(backend).__qualname__}, not "
            "freehold.contrib.django.FreeholdBackend"
        )
    return backend
