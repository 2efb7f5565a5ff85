"""The context of a handler: its job, its lease, its log."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, overload

from freehold.errors import BadInput, NoResult
from freehold.lifespan import NOT_OPENED, opened_deps
from freehold.model.job import Attempt, NewJob
from freehold.model.meta import MetaValue
from freehold.model.retry import WAIT_LIMIT_SECONDS, Retry
from freehold.model.schedule import Tick, tick_of
from freehold.signature import CONTEXT_PARAMETER
from freehold.tasks import Registry, TaskDefinition
from freehold.worker.execution.fenced_transaction import FencedTransaction
from freehold.worker.execution.flows import BatchContext, WorkflowContext
from freehold.worker.execution.handler_store import HandlerStore
from freehold.worker.execution.steps import AttemptSteps
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLog, JobLogBuffer

if TYPE_CHECKING:
    # The default is for type checkers: `Context` alone is a `Context[Any]`.
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
    V = TypeVar("V")
    V_co = TypeVar("V_co", covariant=True)

    class SignalValue(Any, Awaitable[V_co]):  # type: ignore[misc]
        """Has the given type where it is awaited. A plain function gets the value itself, of which
        a type checker knows nothing."""

    class GatheredList(list[V], Awaitable[list[V]]):
        """A list: in coroutines where it is awaited, in plain functions at once."""

else:
    from typing import TypeVar

    D = TypeVar("D")

LONGEST_PAUSE_SECONDS = 30 * 86_400.0
T = TypeVar("T")


class LeaseView:
    """The handler's view of its lease. Readable at any time and from any thread."""

    def __init__(self, lease: HeldLease, now: Callable[[], float]) -> None:
        self._held_lease = lease
        self._now = now

    @property
    def token(self) -> int:
        """Grows with every claim: pass it to other systems, and let them refuse smaller ones."""
        return self._held_lease.attempt.token

    @property
    def held(self) -> bool:
        """Whether this attempt still owns its job."""
        lost = self._held_lease.stop_reason is StopReason.LEASE_LOST
        return not lost and self._now() < self._held_lease.valid_until


class Context(Generic[D]):
    """Passed to handlers that have a parameter ``ctx``. ``Context[Deps]`` types ``ctx.deps``."""

    def __init__(
        self,
        lease: HeldLease,
        now: Callable[[], float],
        job_log: JobLog,
        store: HandlerStore,
        tenant: str | None,
        deps: Any = NOT_OPENED,
    ) -> None:
        #: The tenant that owns the job, if any; ``app.tenant(ctx.tenant)`` enqueues more for it.
        self.tenant = tenant
        self._held_lease = lease
        self._job_log = job_log
        self._store = store
        self._made_steps: AttemptSteps | None = None
        self._deps = deps
        self.lease = LeaseView(lease, now)

    @property
    def job(self) -> Attempt:
        """The job as it was claimed: job_id, task, queue, target, number of the attempt, limits."""
        return self._held_lease.attempt

    @property
    def attempt(self) -> int:
        return self._held_lease.attempt.number

    @property
    def meta(self) -> dict[str, MetaValue]:
        """The metadata of the job, a copy."""
        return self._held_lease.attempt.meta

    @property
    def tick(self) -> Tick | None:
        """The tick of the schedule that made the job (``at``, ``missed``); None for other jobs."""
        return tick_of(self._held_lease.attempt.policy_json)

    @property
    def batch(self) -> BatchContext:
        """The batch that the job is a member of, or whose callback it is: read it, add members."""
        return self._store.batch(self._held_lease)

    @property
    def workflow(self) -> WorkflowContext:
        """The workflow that the job is a node of: read it, add nodes."""
        return self._store.workflow(self._held_lease)

    @property
    def deps(self) -> D:
        """What the lifespan of the app has opened in this process."""
        if self._deps is NOT_OPENED:
            raise BadInput(
                "this app has no lifespan, which makes ctx.deps: give Freehold(lifespan=...), or "
                "in a test Harness(app, deps=...)"
            )
        deps: D = self._deps
        return deps

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the handler should stop; None while it should continue.

        A handler that has read a reason and then returns None counts as stopped. With any other
        value it has finished.
        """
        reason = self._held_lease.stop_reason
        if reason is not None:
            self._held_lease.saw_stop = True
        return reason

    @property
    def canceled(self) -> bool:
        """Whether the handler should stop, for any reason. Coroutines are canceled anyway."""
        return self.stop_reason is not None

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Record the progress of the attempt. Never waits, never fails; only the latest is kept."""
        self._job_log.progress(done, total, message)

    def log(self, message: str) -> None:
        """Keep a line with the job. Never waits, never fails; for limits see `model/job_log.py`."""
        self._job_log.log(message)

    def pause_queue(self, seconds: float, reason: str | None = None) -> None:
        """Pause this job's queue on all workers for so long, as after a 429 from an API.

        Never waits; the pause is written before the attempt's outcome. Jobs that are claimed
        already continue. A pause that lasts longer, as one by an operator, stays as it is.
        """
        self._job_log.pause_queue(_checked_seconds(seconds), reason)

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self,
        name: str,
        function: Callable[..., T],
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> T: ...

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call the function once for this job: a later attempt gets the value that it returned.

        ``await`` it in coroutines. The value is stored as JSON under the lease, and has the
        function's return type. ``retry`` repeats a function that raised within this attempt. A
        name belongs to one step of an attempt. Code outside of steps runs in every attempt.
        """
        return self._steps().run(name, function, args, kwargs, retry)

    def sleep(
        self,
        name: str,
        delay: float | timedelta = 0.0,
        *,
        days: float = 0.0,
        hours: float = 0.0,
        minutes: float = 0.0,
    ) -> Awaitable[None]:
        """Wait once for this job, in seconds or the other units, without holding a slot.

        ``await`` it in coroutines. The attempt ends here and is not counted; the handler runs
        again when the time is over, and this call then returns. At most a second is slept in place.
        """
        return self._steps().sleep(name, _sleep_seconds(delay, days, hours, minutes))  # type: ignore[no-any-return]

    @overload
    def wait_for_signal(
        self, name: str, type: type[T], *, timeout: float | timedelta | None = None
    ) -> SignalValue[T]: ...

    @overload
    def wait_for_signal(
        self, name: str, type: Any = Any, *, timeout: float | timedelta | None = None
    ) -> Any: ...

    def wait_for_signal(
        self, name: str, type: Any = Any, *, timeout: float | timedelta | None = None
    ) -> Any:
        """The value of a signal, sent before or later by ``app.send_signal``, with this type.

        ``await`` it in coroutines. While it waits, the job holds no slot, as in `sleep`. Raises
        TimeoutError after ``timeout``, in seconds; without one it waits for up to ten years.
        """
        seconds = WAIT_LIMIT_SECONDS if timeout is None else _sleep_seconds(timeout, 0, 0, 0)
        return self._steps().wait_for_signal(name, type, seconds)

    @overload
    def gather(
        self, name: str, jobs: Iterable[NewJob[T]], *, failed: Literal["raise"] = "raise"
    ) -> GatheredList[T]: ...

    @overload
    def gather(
        self, name: str, jobs: Iterable[NewJob[T]], *, failed: Literal["return"]
    ) -> GatheredList[T | NoResult]: ...

    def gather(
        self, name: str, jobs: Iterable[NewJob], *, failed: Literal["raise", "return"] = "raise"
    ) -> Any:
        """Store jobs and wait for all of them, without holding a slot. Returns their results.

        ``await`` it in coroutines. The jobs are prepared calls, ``task.prepare(...)``, and are
        stored once for this job, as a step of this name. The results are in their order, with the
        types of their tasks. If one failed or was canceled, JobFailed or JobCanceled is raised when
        all have ended; with ``failed="return"`` such an error stands in its place.
        """
        gathering = self._store.gather(self._held_lease, self._steps(), name, jobs, failed)
        return gathering.run()

    def transaction(self, result: Any = None, *, step: str | None = None) -> FencedTransaction:
        """The handler's own writes and the job's success, committed together or not at all.

        ``async with`` in coroutines, ``with`` in plain functions. Yields the driver's connection
        (psycopg, sqlite3) inside a transaction; pass it as ``connection=`` to enqueue more jobs
        in it. At the end of the block the job succeeds with ``result``, or LeaseLost is raised
        and everything is rolled back. An exception in the block rolls back and propagates. Keep
        the block short: on PostgreSQL it holds back vacuum, on SQLite it blocks every other
        write, lease renewals included.

        With ``step`` the block is a step of that name, committed with its writes, and the job goes
        on. In a later attempt the connection is false, and the block must not write again:
        ``if connection:``.
        """
        if step is None:
            return self._store.transaction(self._held_lease, result)
        if result is not None:
            raise BadInput("ctx.transaction(step=...) does not end the job: leave out result=")
        return self._store.step_transaction(self._held_lease, self._steps(), step)

    def _steps(self) -> AttemptSteps:
        if self._made_steps is None:
            self._made_steps = self._store.steps(self._held_lease)
        return self._made_steps


class LogBuffers(Protocol):
    def new_buffer(self, lease: HeldLease) -> JobLogBuffer: ...


class Contexts:
    """Makes the contexts of one worker's handlers."""

    def __init__(
        self,
        log_buffers: LogBuffers,
        store: HandlerStore,
        now: Callable[[], float],
        tenant: str | None,
    ) -> None:
        self._log_buffers = log_buffers
        self._store = store
        self._now = now
        self._tenant = tenant
        self._deps = opened_deps.get()

    def new(self, lease: HeldLease) -> Context:
        lease.log_buffer = buffer = self._log_buffers.new_buffer(lease)
        return Context(lease, self._now, buffer, self._store, self._tenant, self._deps)


def with_context(
    definition: TaskDefinition, tasks: Registry, ctx: Context, call: Callable[..., Any]
) -> Callable[[], Any]:
    """The call of a handler with its context and dependencies, inside of all extensions."""
    signature, is_coroutine = definition.signature, definition.is_coroutine
    if signature.wants_context:
        call = functools.partial(call, **{CONTEXT_PARAMETER: ctx})
    if signature.dependencies is not None:
        call = signature.dependencies.around(call, ctx, tasks.overrides, is_coroutine=is_coroutine)
    if not tasks.extensions.attempts:
        return call
    return tasks.extensions.around(call, ctx, is_coroutine=is_coroutine)


def _sleep_seconds(delay: float | timedelta, days: float, hours: float, minutes: float) -> float:
    try:
        more = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        seconds = (more + timedelta(days=days, hours=hours, minutes=minutes)).total_seconds()
    except (TypeError, OverflowError, ValueError):
        seconds = -1.0
    if 0 <= seconds <= WAIT_LIMIT_SECONDS:
        return seconds
    raise BadInput("ctx.sleep: give 0 or more seconds, at most ten years in all")


def _checked_seconds(seconds: object) -> float:
    if isinstance(seconds, int | float) and 0 < seconds <= LONGEST_PAUSE_SECONDS:
        return float(seconds)
    raise BadInput(f"seconds={seconds!r}: give a number above 0, at most 30 days")
