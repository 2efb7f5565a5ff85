"""From a stored job to the `TaskResult` of Django.

Django has four states. A job that waits for any reason is READY, also one that is paused or waits
for a retry; a leased one is RUNNING; a canceled one is FAILED, as a failed one is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from freehold.contrib.django.compat import Task, TaskError, TaskResult, TaskResultStatus
from freehold.contrib.django.freehold_task import with_fields
from freehold.errors import JobCanceled, JobFailed, LeaseLost
from freehold.model.history import Event, EventKind
from freehold.model.job import ErrorInfo, Job
from freehold.model.state import LEASED, State

#: The metadata of a job that was enqueued with `run_after`: a retry changes the time of the row.
RUN_AFTER = "django_run_after"

_STATUS = {
    **dict.fromkeys(State, TaskResultStatus.READY),
    **dict.fromkeys(LEASED, TaskResultStatus.RUNNING),
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELED: TaskResultStatus.FAILED,
}
#: Events that end an attempt which counts.
_ENDS = {
    EventKind.RETRIED: JobFailed,
    EventKind.LEASE_LOST: LeaseLost,
    EventKind.FAILED: JobFailed,
    EventKind.CANCELED: JobCanceled,
}
#: Errors without an exception, by the name that the worker gives them.
_CLASSES = {"Timeout": TimeoutError}


def find_task(name: str) -> Any | None:
    """The task of Django with this name; None: the name is of something else, or of nothing."""
    try:
        found = import_string(name)
    except ImportError:
        return None
    return found if isinstance(found, Task) else None


def result_of(job: Job, events: Sequence[Event], alias: str) -> Any | None:
    """None: the job is not of a task of Django."""
    task = find_task(job.task)
    if task is None:
        return None
    runs = list(_runs(job, events))
    call = call_of(job)
    result = TaskResult(
        task=_task_of(task, job, alias),
        id=str(job.id),
        status=_STATUS[job.state],
        enqueued_at=local_time(job.created_at),
        started_at=runs[0].began if runs else None,
        last_attempted_at=runs[-1].began if runs else None,
        finished_at=None if job.report is None else local_time(job.report.finished_at),
        args=call["args"],
        kwargs=call["kwargs"],
        backend=alias,
        errors=[_error_of(event) for event in events if _is_failure(event)],
        worker_ids=[each.worker for each in runs],
    )
    if job.report is not None and job.state is State.SUCCEEDED:
        object.__setattr__(result, "_return_value", job.report.result)
    return result


def new_result(task: Any, alias: str, job_id: int, created_at: datetime | None, call: Any) -> Any:
    """The result of a job that was just stored, or of which only the id is known."""
    return TaskResult(
        task=task,
        id=str(job_id),
        status=TaskResultStatus.READY,
        enqueued_at=None if created_at is None else local_time(created_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=call["args"],
        kwargs=call["kwargs"],
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def call_of(job: Job) -> dict[str, Any]:
    """Arguments by position and by name, as `FreeholdBackend` stores them."""
    stored = msgspec.json.decode(job.args)
    return {"args": stored.get("args", []), "kwargs": stored.get("kwargs", {})}


def local_time(time: datetime) -> datetime:
    """As `timezone.now` returns times in this project."""
    return time if settings.USE_TZ else timezone.make_naive(time)


def _task_of(task: Any, job: Job, alias: str) -> Any:
    run_after = job.meta.get(RUN_AFTER)
    return with_fields(
        task,
        backend=alias,
        priority=job.priority,
        queue_name=job.queue,
        run_after=None if run_after is None else local_time(datetime.fromisoformat(str(run_after))),
    )


class _Run(NamedTuple):
    worker: str
    began: datetime


def _runs(job: Job, events: Sequence[Event]) -> Iterator[_Run]:
    """The attempts that counted, oldest first."""
    for event in events:
        if event.kind in _ENDS and event.token is not None and event.leased_at is not None:
            yield _run(event.by, event.started_at or event.leased_at)
    if job.lease is not None:
        yield _run(job.lease.owner, job.lease.started_at or job.lease.leased_at)
    report = job.report
    if report is not None and job.state is State.SUCCEEDED and report.leased_at is not None:
        yield _run(report.finished_by, report.started_at or report.leased_at)


def _run(worker: str | None, began: datetime) -> _Run:
    return _Run(worker or "", local_time(began))


def _is_failure(event: Event) -> bool:
    """Of an attempt; or the cancel of a job that waited, which had none."""
    return event.kind in _ENDS and (event.token is not None or event.kind is EventKind.CANCELED)


def _error_of(event: Event) -> Any:
    reason = event.reason or str(event.kind)
    if event.error is None:
        kind = _ENDS[event.kind]
        path = f"{kind.__module__}.{kind.__qualname__}"
        return TaskError(exception_class_path=path, traceback=f"{path}: {reason}\n")
    path = _class_path(event.error, _ENDS[event.kind])
    trace = event.error.trace or f"{path}: {event.error.message}"
    return TaskError(exception_class_path=path, traceback=trace.rstrip("\n") + "\n")


def _class_path(error: ErrorInfo, otherwise: type[BaseException]) -> str:
    """Django imports the class, so a name that no exception has is replaced."""
    if "." in error.type:
        return error.type
    kind = _CLASSES.get(error.type, otherwise)
    return f"{kind.__module__}.{kind.__qualname__}"
