"""@task: a Python function that can be enqueued; its calls are checked against its types."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from freehold.errors import BadArguments, BadInput, BadPayload, BadSettings, UnknownTask
from freehold.extensions import Extensions
from freehold.lifespan import Lifespan
from freehold.model import payload
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.meta import MetaValue, encode_meta
from freehold.model.names import check_name
from freehold.model.options import Options, tags_of
from freehold.model.policy import DEFAULT_POLICY, Policy, pack
from freehold.model.start_by import stored_start_by
from freehold.model.waiting import (
    Debounce,
    Throttle,
    Unique,
    waiting_of,
)
from freehold.results import ResultHandle, check_may_wait, seconds_of_wait
from freehold.signature import CONTEXT_PARAMETER, Signature

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", covariant=True)


class Enqueuer(Protocol[H]):
    """What a task needs of its app."""

    def _submit(self, job: NewJob, connection: Any, tenant: str | None) -> H: ...

    async def _asubmit(self, job: NewJob, connection: Any, tenant: str | None) -> H: ...

    @property
    def _registry(self) -> Registry: ...


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """What is fixed when a task is defined."""

    name: str
    function: Callable[..., Any]
    signature: Signature
    policy: Policy = DEFAULT_POLICY
    isolation: str = "auto"
    limit: Limit | None = None
    #: Needed for every job, and slow to compute.
    is_coroutine: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_coroutine", inspect.iscoroutinefunction(self.function))
        secret_args, secret_result = self.signature.secret_args, self.signature.secret_result
        if secret_args or secret_result:
            marked = replace(self.policy, secret_args=secret_args, secret_result=secret_result)
            object.__setattr__(self, "policy", marked)


class Task(Generic[P, R, H]):
    """A function that can be enqueued. Calling the task still calls the function."""

    def __init__(
        self,
        app: Enqueuer[H],
        definition: TaskDefinition,
        function: Callable[P, R],
        options: Options,
    ) -> None:
        self._app = app
        self.definition = definition
        self.function = function
        self.options = options
        self.__doc__ = function.__doc__

    @property
    def name(self) -> str:
        return self.definition.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly. A function that takes a context is called by a worker
        only."""
        if self.definition.signature.wants_context and CONTEXT_PARAMETER not in kwargs:
            raise BadInput(
                f"task {self.name} takes a context, which only a worker has: call its .function "
                "with a context of your own, or run it with freehold.testing"
            )
        return self.function(*args, **kwargs)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: float | timedelta | None = None,
        target: str | None = None,
        limit_key: str | None = None,
        unique_key: str | None = None,
        idempotency_key: str | None = None,
        idempotency_seconds: float | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        tags: tuple[str, ...] | list[str] | None = None,
        connection: Any = None,
        tenant: str | None = None,
        meta: Mapping[str, MetaValue] | None = None,
        wait: float | timedelta | None = None,
        unique: Unique | None = None,
        debounce: Debounce | None = None,
        throttle: Throttle | None = None,
        start_by: datetime | timedelta | float | None = None,
    ) -> Task[P, R, H]:
        """The same task with other options."""
        if wait is not None:
            seconds_of_wait(wait)
        given: dict[str, Any] = {
            "queue": queue,
            "priority": priority,
            "run_at": run_at,
            "delay": delay,
            "target": target,
            "limit_key": limit_key,
            "unique_key": unique_key,
            "idempotency_key": idempotency_key,
            "idempotency_seconds": idempotency_seconds,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "tags": None if tags is None else tags_of(tags),
            "connection": connection,
            "tenant": tenant,
            "meta": meta,
            "wait": wait,
            "unique": unique,
            "debounce": debounce,
            "throttle": throttle,
            "start_by": start_by,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes:
            return self
        return Task(self._app, self.definition, self.function, replace(self.options, **changes))

    def prepare(
        self: Task[P, Any, ResultHandle[T]], *args: P.args, **kwargs: P.kwargs
    ) -> NewJob[T]:
        """A checked job for enqueue_many; writes nothing."""
        tenant = self.options.tenant
        if tenant is not None:  # enqueue_many would store it in the store of its own app
            raise BadInput(
                f"a prepared job has no tenant yet: leave out tenant= here, and pass the job to "
                f"app.tenant({tenant!r}).enqueue_many(...)"
            )
        data = self.definition.signature.encode(args, kwargs)
        return msgspec.structs.replace(self._template, args=data)

    def prepare_call(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, pending: bool = False
    ) -> NewJob:
        data = self.definition.signature.encode(args, kwargs)
        if pending:
            return _checked(msgspec.structs.replace(self._template, args=data, pending=True))
        return msgspec.structs.replace(self._template, args=data)

    def prepare_encoded(self, data: bytes) -> NewJob:
        """A job from arguments that were checked against the signature."""
        return msgspec.structs.replace(self._template, args=data)

    def prepare_json(self, args: bytes, *, pending: bool = False) -> NewJob:
        """A checked job from arguments in JSON: one object by parameter name."""
        self.definition.signature.check(args)
        return _checked(msgspec.structs.replace(self._template, args=args, pending=pending))

    @cached_property
    def _template(self) -> NewJob:
        """What all jobs with these options have in common."""
        return new_job(self.definition, self.options, b"{}")

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> H:
        """Store a job that runs this function with these arguments."""
        data, options = self.definition.signature.encode(args, kwargs), self.options
        job = msgspec.structs.replace(self._template, args=data)
        return self._app._submit(job, options.connection, options.tenant)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> H:
        """The same for asyncio."""
        data, options = self.definition.signature.encode(args, kwargs), self.options
        job = msgspec.structs.replace(self._template, args=data)
        return await self._app._asubmit(job, options.connection, options.tenant)

    def call(self: Task[P, Any, ResultHandle[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Enqueue a job and wait for its result, for at most the option ``wait``. Errors are those
        of `JobHandle.result`."""
        handle = self._app._submit(self._prepare_awaited(args, kwargs), None, self.options.tenant)
        return handle.result(self.options.wait)

    async def acall(self: Task[P, Any, ResultHandle[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for asyncio."""
        job = self._prepare_awaited(args, kwargs)
        handle = await self._app._asubmit(job, None, self.options.tenant)
        return await handle.aresult(self.options.wait)

    def _prepare_awaited(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        check_may_wait(self.options.connection)
        job = self.prepare_call(args, kwargs)
        return msgspec.structs.replace(job, policy=replace(job.policy, notify_end=True))

    def create(self, *args: P.args, **kwargs: P.kwargs) -> H:
        """Store a pending job; `JobHandle.enqueue` puts it into the queue."""
        job, options = self.prepare_call(args, kwargs, pending=True), self.options
        return self._app._submit(job, options.connection, options.tenant)

    async def acreate(self, *args: P.args, **kwargs: P.kwargs) -> H:
        """The same for asyncio."""
        job, options = self.prepare_call(args, kwargs, pending=True), self.options
        return await self._app._asubmit(job, options.connection, options.tenant)

    def __repr__(self) -> str:
        return f"<Task {self.name} queue={self.options.queue}>"


def new_job(definition: TaskDefinition, options: Options, args: bytes) -> NewJob:
    """A job with arguments that were checked against the signature."""
    return _job(definition.name, definition.policy, options, args, pending=False)


def raw_job(task: str, options: Options, args: bytes, pending: bool = False) -> NewJob:
    """A job of a task that is not defined here: its arguments are checked only as JSON."""
    check_name("task", task)
    what = f"the call of task {task}"
    if not isinstance(payload.parse(what, args), dict):
        raise BadPayload(f"{what} is not a JSON object: give its arguments by name, as {{...}}")
    return _job(task, DEFAULT_POLICY, options, args, pending)


def with_secrets(job: NewJob, names: Sequence[str]) -> NewJob:
    """The same job; these arguments of it are secret, besides those that its task marks."""
    if not names:
        return job
    given = payload.stored_object(job.args.decode()) or {}
    for name in names:
        if name not in given:
            raise BadArguments(f"the secret argument {name!r} is not among the arguments")
    secret = tuple(dict.fromkeys((*job.policy.secret_args, *names)))
    return msgspec.structs.replace(job, policy=replace(job.policy, secret_args=secret))


def _job(task: str, policy: Policy, options: Options, args: bytes, pending: bool) -> NewJob:
    attempts = options.max_attempts
    new = NewJob(
        task=task,
        args=args,
        queue=options.queue,
        priority=options.priority,
        # In UTC, because the stores read an offset with seconds differently.
        run_at=None if options.run_at is None else options.run_at.astimezone(UTC),
        delay_seconds=options.delay_seconds,
        target=options.target,
        limit_key=options.limit_key,
        unique_key=options.key_until_end,
        idempotency_key=options.idempotency_key,
        idempotency_seconds=options.idempotency_seconds,
        max_attempts=policy.retry.max_attempts if attempts is None else attempts,
        timeout_seconds=options.timeout_seconds,
        tags=options.tags,
        # Exception rules are not stored, so a policy with nothing else is the default one.
        policy=policy if pack(policy) else DEFAULT_POLICY,
        pending=pending,
        meta_json=encode_meta(options.meta),
        waiting=waiting_of(task, options.waiting_option),
        start_by=stored_start_by(options.start_by),
    )
    return _checked(new)


def _checked(job: NewJob) -> NewJob:
    if job.pending and job.waiting is not None:
        raise BadInput(
            f"a pending job of {job.task} is not unique until its start, debounced or throttled: "
            "leave that out, or enqueue it at once"
        )
    return job


class Registry:
    """The tasks of an app, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any, Any]] = {}
        self.extensions = Extensions()
        self.lifespan: Lifespan | None = None
        #: What takes the place of a dependency.
        self.overrides: dict[Callable[..., Any], Callable[..., Any]] = {}

    def add(self, task: Task[Any, Any, Any]) -> None:
        self.check(task)
        self._tasks[task.name] = task

    def check(self, task: Task[Any, Any, Any]) -> None:
        """Whether the task can be added. Raises BadSettings."""
        before = self._tasks.get(task.name)
        # A module that is imported twice (a reload, __main__) defines the same function again.
        if before is not None and before.function.__qualname__ != task.function.__qualname__:
            raise BadSettings(
                f"two tasks are called {task.name}: give one of them another name with "
                "@app.task(name=...)"
            )

    def get(self, name: str) -> Task[Any, Any, Any]:
        if name in self._tasks:
            return self._tasks[name]
        close = get_close_matches(name, self._tasks, n=1)
        known = (
            f"did you mean {close[0]}?" if close else f"known: {', '.join(self.names) or 'none'}"
        )
        raise UnknownTask(f"no task is called {name!r}: {known}")

    def check_args(self, name: str, args: bytes) -> None:
        """Raises BadArguments if the task is known and does not accept these arguments."""
        if name in self._tasks:
            self._tasks[name].definition.signature.check(args)

    def fits(self, name: str, args: str) -> bool:
        """Whether the task accepts these stored arguments. Decoding may run code of their types:
        an exception that it raises is an error of the attempt."""
        try:
            self._tasks[name].definition.signature.decode(args)
        except (BadArguments, KeyError):
            return False
        except Exception:
            return True
        return True

    @property
    def names(self) -> list[str]:
        return sorted(self._tasks)

    @property
    def limits(self) -> dict[str, Limit]:
        """The limits that tasks declare, by limit key."""
        defined = [task.definition for task in self._tasks.values()]
        return {limit_key_of(each.name): each.limit for each in defined if each.limit is not None}

    @property
    def queues(self) -> set[str]:
        """The default queues of the tasks."""
        return {task.options.queue for task in self._tasks.values()}

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any, Any]]:
        return iter(self._tasks.values())


def limit_key_of(task: str) -> str:
    """The limit key of the jobs of a task that declares a limit."""
    return f"task:{task}"


def default_name(function: Callable[..., Any]) -> str:
    """module.function; a nested function has the names of its enclosing functions in between."""
    module = function.__module__
    if module == "__main__":
        module = script_name() or module
    name = f"{module}.{function.__qualname__}".replace(".<locals>", "")
    return check_name("task", name)


def check_importable(task: str, function: Callable[..., Any]) -> None:
    """A child process finds the function by its module and name."""
    if "<locals>" in function.__qualname__:
        raise BadSettings(
            f"task {task} is a function inside a function, which a child process cannot import: "
            'move it to the top of its module, or leave out isolation="process"'
        )


def script_name() -> str | None:
    """The name under which a script is imported: a worker imports it, and must know its tasks."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file and file != "<stdin>" else None
