"""Compares enqueued calls with the call that a test expects, and describes the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from freehold.model.job import NewJob
from freehold.tasks import Task, new_job
from freehold.testing.recording_client import RecordedCall

AnyTask: TypeAlias = Task[Any, Any, Any]
_OPTIONS = (
    "queue",
    "priority",
    "run_at",
    "delay_seconds",
    "target",
    "limit_key",
    "unique_key",
    "idempotency_key",
    "idempotency_seconds",
    "max_attempts",
    "timeout_seconds",
    "tags",
    "meta_json",
    "waiting",
)


class Expected:
    """A call as a test gives it. Arguments that it leaves out may have any value."""

    def __init__(
        self, task: AnyTask, plain: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """``plain`` is the task without `using`."""
        self.task = task
        signature = task.definition.signature.of_calls
        self.arguments = signature.bind_partial(*args, **kwargs).arguments
        self.options = _options(task, plain)

    def fits(self, call: RecordedCall) -> bool:
        if call.job.task != self.task.name:
            return False
        given = arguments_of(self.task, call.job, defaults=True)
        return all(
            name in given and given[name] == value for name, value in self.arguments.items()
        ) and all(getattr(call.job, name) == value for name, value in self.options.items())

    def __str__(self) -> str:
        return shown(self.arguments | self.options) or "any arguments"


def arguments_of(task: AnyTask, job: NewJob, *, defaults: bool = False) -> dict[str, Any]:
    """The arguments of a call by name, with their types."""
    args, kwargs = task.definition.signature.decode(job.args)
    bound = task.definition.signature.of_calls.bind_partial(*args, **kwargs)
    if defaults:
        bound.apply_defaults()
    return dict(bound.arguments)


def described(task: AnyTask, plain: AnyTask, calls: Sequence[RecordedCall]) -> str:
    """The calls of a task, one per line, with the options that differ from the task's own."""
    usual = new_job(plain.definition, plain.options, b"{}")
    lines = [
        f"  job {call.id}: {shown(arguments_of(task, call.job) | _differing(call.job, usual))}"
        for call in calls
        if call.job.task == task.name
    ]
    return "\n".join(lines) or "  nothing"


def shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _options(task: AnyTask, plain: AnyTask) -> dict[str, Any]:
    """The options that `using` has changed, or all of the task's own if it has changed none."""
    if task is plain:
        return {}
    wanted = new_job(task.definition, task.options, b"{}")
    usual = new_job(plain.definition, plain.options, b"{}")
    return _differing(wanted, usual) or {name: getattr(wanted, name) for name in _OPTIONS}


def _differing(job: NewJob, usual: NewJob) -> dict[str, Any]:
    return {
        name: getattr(job, name) for name in _OPTIONS if getattr(job, name) != getattr(usual, name)
    }
