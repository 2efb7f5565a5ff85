"""One attempt -> one Outcome, whatever its handler raises; None if there is nothing to write.

Every stop works the same, whatever its reason: the HeldLease gets a stop_reason, and then a
coroutine is canceled, a thread finds ctx.canceled set, a child process gets a signal. When the
handler has ended, the outcome follows from the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from freehold.errors import BadArguments
from freehold.model.handler_exceptions import HandlerException
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.tasks import Registry, TaskDefinition
from freehold.telemetry import fields, log, running_attempt
from freehold.worker.drain import STUCK_SECONDS, Drain
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Contexts, with_context
from freehold.worker.execution.process_pool import ProcessPool
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.held_leases import OVER, HeldLease, Phase, StopReason


class Runner:
    """Runs attempts of known tasks in the running loop, in threads, or in child processes."""

    def __init__(
        self,
        tasks: Registry,
        threads: ThreadPool,
        processes: ProcessPool,
        contexts: Contexts,
        drain: Drain,
        misfit_seconds: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = tasks
        self._threads = threads
        self._processes = processes
        self._contexts = contexts
        self._drain = drain
        self._misfit_seconds = misfit_seconds

    async def run(self, lease: HeldLease) -> Outcome | None:
        """None: nothing may be written, because the lease is lost or the job already finished."""
        if lease.stop_reason is not None:  # stopped while it waited for a slot
            return outcomes.of_stop(lease, 0.0)
        definition = self._tasks.get(lease.attempt.task).definition
        lease.started_at = began = self._loop.time()
        lease.move_to(Phase.RUNNING)
        running_attempt.set(lease.attempt)
        try:
            args, kwargs = definition.signature.decode(lease.attempt.args)
        except BadArguments as error:
            return outcomes.of_misfit(error, self._misfit_seconds, lease.attempt)
        except BaseException as error:  # decoding may run code of the arguments' types
            return outcomes.of_exception(error, definition.policy.retry, 0.0, lease.attempt)
        seconds = lease.attempt.timeout_seconds
        timer = None if seconds is None else self._start_timeout(lease, seconds)
        ended: Any
        try:
            call: Callable[[], Any] = functools.partial(definition.function, *args, **kwargs)
            if definition.signature.needs_context or self._tasks.extensions.attempts:
                call = self._with_context(definition, lease, call)
            if definition.isolation == "process":
                ended = await self._processes.run(definition, lease) or _Stopped()
            elif definition.is_coroutine:
                lease.is_coroutine = True
                ended = await self._await_coroutine(lease, call)
            else:
                ended = await self._await_thread(
                    lease, self._threads.run(functools.partial(_ended, call))
                )
        except Exception as error:  # not the handler's: for example, no process could be started
            ended = error
        finally:
            lease.on_stop = None
            if timer is not None:
                timer.cancel()
        ran = self._loop.time() - began
        try:
            return _outcome_of(lease, definition, ended, ran)
        except BaseException:  # raised by code of the handler's objects
            return None if lease.phase is Phase.FINISHED else outcomes.of_broken_objects(ran)

    def _with_context(
        self, definition: TaskDefinition, lease: HeldLease, call: Callable[[], Any]
    ) -> Callable[[], Any]:
        """For a handler with a parameter ``ctx`` or dependencies, and for extensions."""
        ctx = self._contexts.new(lease)
        if definition.isolation == "process":  # the child makes a context of its own
            return call
        return with_context(definition, self._tasks, ctx, call)

    def _start_timeout(self, lease: HeldLease, seconds: float) -> asyncio.TimerHandle:
        lease.deadline = self._loop.time() + seconds
        return self._loop.call_later(seconds, lease.stop, StopReason.TIMEOUT)

    # These return the handler's result, its exception, or _Stopped, as values.

    async def _await_coroutine(self, lease: HeldLease, call: Callable[[], Awaitable[Any]]) -> Any:
        """In the current task, which a stop cancels: a task per handler would cost more."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        stop = _Cancel(self._loop, task, lease, self._drain)
        lease.on_stop = stop
        if lease.stop_reason is not None:
            stop(lease.stop_reason)
        ended: Any
        try:
            ended = await call()
        except asyncio.CancelledError:
            ended = _Stopped()
        except BaseException as error:
            stop.has_ended = True
            if task.cancelling():
                await _clear_cancellations(task)
            return error  # a variable would be a cycle: the traceback refers to this frame
        finally:
            stop.has_ended = True
        if task.cancelling():
            await _clear_cancellations(task)
        return ended

    async def _await_thread(self, lease: HeldLease, future: asyncio.Future[Any]) -> Any:
        """A thread cannot be stopped. If it ignores its stop, its slot is freed without it."""
        loop = self._loop
        stuck = loop.create_future()

        def set_stuck() -> None:
            if not stuck.done():
                stuck.set_result(None)

        def on_stop(_reason: StopReason) -> None:
            loop.call_soon_threadsafe(loop.call_later, STUCK_SECONDS, set_stuck)

        lease.on_stop = on_stop
        if lease.stop_reason is not None:
            on_stop(lease.stop_reason)
        await asyncio.wait({future, stuck}, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            self._drain.on_stuck(lease)
            future.add_done_callback(_retrieve_error)
            return _Stopped()
        error = future.exception()
        if error is None:
            return future.result()
        return error


def _ended(call: Callable[[], Any]) -> Any:
    """The exception as a value too: a future would examine it in the event loop."""
    try:
        return call()
    except BaseException as error:
        return error


def _outcome_of(
    lease: HeldLease, definition: TaskDefinition, ended: Any, ran: float
) -> Outcome | None:
    """The outcome of a handler that has ended, given its stop reason."""
    if ended is None and lease.stop_reason is None and lease.phase is Phase.RUNNING:
        return Outcome(kind=OutcomeKind.SUCCESS, ran_seconds=ran)  # most of them
    if lease.phase is Phase.FINISHED:
        _log_ignored_end(lease, ended)
        return None
    if lease.stop_reason in OVER:
        return outcomes.of_stop(lease, ran)
    ended = lease.ended_by_context or ended
    if isinstance(ended, Outcome):  # made by the context, or by a child process
        return ended
    if isinstance(ended, _Stopped):
        if lease.stop_reason is not None:
            return outcomes.of_stop(lease, ran)
        ended = asyncio.CancelledError("the handler was canceled by its own code")
    if isinstance(ended, BaseException):
        if lease.stop_reason is not None and not isinstance(ended, HandlerException):
            return outcomes.of_stop(lease, ran)  # a thread may stop by raising
        return outcomes.of_exception(ended, definition.policy.retry, ran, lease.attempt)
    if ended is None and lease.saw_stop:
        return outcomes.of_stop(lease, ran)  # a handler that polls stops by returning
    return outcomes.of_result(ended, ran, lease.attempt)


def _log_ignored_end(lease: HeldLease, ended: Any) -> None:
    """After its fenced transaction a handler's end has no effect; it is logged."""
    if ended is None:
        return
    attempt, how = lease.attempt, "returned a value"
    if isinstance(ended, _Stopped):
        how = "was stopped"
    elif isinstance(ended, BaseException):
        how = f"raised {type(ended).__name__}"
    log.warning(
        "job %d of %s was already finished by its transaction when its handler %s: ignored",
        attempt.job_id,
        attempt.task,
        how,
        extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        exc_info=ended if isinstance(ended, Exception) and not attempt.policy.secret_args else None,
    )


async def _clear_cancellations(task: asyncio.Task[Any]) -> None:
    """A cancellation that the handler left over must not reach the code that ends its attempt."""
    while task.cancelling():
        task.uncancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # one that is pending is raised here


class _Stopped:
    """The handler ended because of a stop or a cancellation."""


class _Cancel(msgspec.Struct, eq=False):
    """Cancels a task on a stop from any thread. Reports it as stuck if it does not end. A struct,
    because every handler on the event loop has one."""

    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[Any]
    lease: HeldLease
    drain: Drain
    #: The handler has ended.
    has_ended: bool = False

    def __call__(self, _reason: StopReason) -> None:
        self.loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self.has_ended:
            return
        self.task.cancel()
        self.loop.call_later(STUCK_SECONDS, self._cancel_again)

    def _cancel_again(self) -> None:
        """A handler that suppressed its cancellation is reported, and canceled again."""
        if not self.has_ended:
            self.drain.on_stuck(self.lease)
            self._cancel()


def _retrieve_error(future: asyncio.Future[Any]) -> None:
    """Retrieves the error of an abandoned thread, or asyncio would log it."""
    if not future.cancelled():
        future.exception()
