"""4. One attempt -> one Outcome. Never raises.

A handler is told to stop in one way, whatever the reason: the Held gets a stop_reason, and
then a coroutine is cancelled, a thread finds ctx.canceled set, a process gets a signal. What
its end means is decided from the reason afterwards.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from freehold.errors import BadArguments
from freehold.model.handler_exceptions import HandlerException
from freehold.model.outcome import Outcome
from freehold.signature import CONTEXT_PARAMETER
from freehold.tasks import Registry, TaskDefinition
from freehold.telemetry import fields, log
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Context
from freehold.worker.execution.process_pool import ProcessPool
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.held_leases import HeldLease, StopReason

#: A handler that was told to stop and has not ended after this long is stuck.
STUCK_SECONDS = 5.0

#: Too late is too late, even if the handler made something of it.
_TOO_LATE = frozenset({StopReason.LEASE_LOST, StopReason.TIMEOUT})


class Runner:
    """Runs attempts of known tasks in the running loop, in threads, or in child processes."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tasks: Registry,
        threads: ThreadPool,
        children: ProcessPool,
        on_stuck: Callable[[HeldLease], None],
        context: Callable[[HeldLease], Context],
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._threads = threads
        self._children = children
        self._on_stuck = on_stuck
        self._context = context

    async def run(self, held: HeldLease) -> Outcome | None:
        """None: the lease was lost, or the job is finished already; nothing may be written."""
        if held.stop_reason is not None:  # asked while it waited in hand
            return outcomes.of_stop(held, 0.0)
        definition = self._tasks.get(held.attempt.task).definition
        held.started = began = self._loop.time()
        try:
            args, kwargs = definition.signature.decode(held.attempt.args)
        except BadArguments as error:
            return outcomes.of_undecodable(error)
        timer = self._limit(held)
        ended: Any
        try:
            if definition.signature.wants_context:
                kwargs[CONTEXT_PARAMETER] = self._context(held)
            call = functools.partial(definition.function, *args, **kwargs)
            if definition.isolation == "process":
                ended = await self._children.run(definition, held) or _Stopped()
            elif definition.is_coroutine:
                ended = await self._await_coroutine(held, call())
            else:
                ended = await self._await_thread(held, self._threads.run(call))
        except Exception as error:  # no handler's: say, that no process could be started
            ended = error
        finally:
            held.on_stop = None
            if timer is not None:
                timer.cancel()
        return _judged(held, definition, ended, self._loop.time() - began)

    def _limit(self, held: HeldLease) -> asyncio.TimerHandle | None:
        seconds = held.attempt.timeout_seconds
        if seconds is None:
            return None
        held.deadline = self._loop.time() + seconds
        return self._loop.call_later(seconds, held.stop, StopReason.TIMEOUT)

    # Answer the handler's result, its exception, or _Stopped: as values.

    async def _await_coroutine(self, held: HeldLease, coroutine: Awaitable[Any]) -> Any:
        """In the current task, which the stop cancels: the cheapest way to run a handler."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        stop = _Cancel(self._loop, task, held, self._on_stuck)
        held.on_stop = stop
        if held.stop_reason is not None:
            stop(held.stop_reason)
        try:
            return await coroutine
        except asyncio.CancelledError:
            if held.stop_reason is None and not task.cancelling():
                return _Stopped()
            while task.cancelling():
                task.uncancel()
            return _Stopped()
        except BaseException as error:
            return error
        finally:
            stop.end()

    async def _await_thread(self, held: HeldLease, future: asyncio.Future[Any]) -> Any:
        """A thread cannot be stopped. One that ignores its stop is given up, and its slot freed."""
        loop = self._loop
        given_up = loop.create_future()

        def give_up() -> None:
            if not given_up.done():
                given_up.set_result(None)

        def on_stop(_reason: StopReason) -> None:
            loop.call_soon_threadsafe(loop.call_later, STUCK_SECONDS, give_up)

        held.on_stop = on_stop
        if held.stop_reason is not None:
            on_stop(held.stop_reason)
        await asyncio.wait({future, given_up}, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            self._on_stuck(held)
            future.add_done_callback(_retrieved)
            return _Stopped()
        error = future.exception()
        if error is None:
            return future.result()
        return error


def _judged(held: HeldLease, definition: TaskDefinition, ended: Any, ran: float) -> Outcome | None:
    """What the handler's end means, given what it was told."""
    if held.finished:
        _tell_if_unheard(held, ended)
        return None
    if held.stop_reason in _TOO_LATE:
        return outcomes.of_stop(held, ran)
    if isinstance(ended, Outcome):  # a child process has made it
        return ended
    if isinstance(ended, _Stopped):
        if held.stop_reason is not None:
            return outcomes.of_stop(held, ran)
        ended = asyncio.CancelledError("the handler was cancelled by its own code")
    if isinstance(ended, BaseException):
        if held.stop_reason is not None and not isinstance(ended, HandlerException):
            return outcomes.of_stop(held, ran)  # its way out, which in a thread is to raise
        return outcomes.of_exception(ended, definition.policy.retry, ran)
    if ended is None and held.saw_stop:
        return outcomes.of_stop(held, ran)  # the way out of a handler that asks
    return outcomes.of_result(ended, ran)


def _tell_if_unheard(held: HeldLease, ended: Any) -> None:
    """After its fenced transaction a handler's end changes nothing, but should not be silent."""
    if ended is None:
        return
    attempt, how = held.attempt, "returned a value"
    if isinstance(ended, _Stopped):
        how = "was stopped"
    elif isinstance(ended, BaseException):
        how = f"raised {type(ended).__name__}"
    log.warning(
        "job %d of %s had ended with its transaction when its handler %s: nothing more is written",
        attempt.job_id,
        attempt.task,
        how,
        extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        exc_info=ended if isinstance(ended, Exception) else None,
    )


class _Stopped:
    """The handler ended because it was told to."""


class _Cancel:
    """Cancels a task when told to, from any thread; names it stuck if that does not help."""

    __slots__ = ("_ended", "_held", "_loop", "_on_stuck", "_task")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        task: asyncio.Task[Any],
        held: HeldLease,
        on_stuck: Callable[[HeldLease], None],
    ) -> None:
        self._loop = loop
        self._task = task
        self._held = held
        self._on_stuck = on_stuck
        self._ended = False

    def __call__(self, _reason: StopReason) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._ended:
            return
        self._task.cancel()
        self._loop.call_later(STUCK_SECONDS, self._again)

    def _again(self) -> None:
        """A handler that swallowed its cancellation gets another, and is named."""
        if not self._ended:
            self._on_stuck(self._held)
            self._cancel()

    def end(self) -> None:
        self._ended = True


def _retrieved(future: asyncio.Future[Any]) -> None:
    """The end of a thread that nobody waits for any more."""
    if not future.cancelled():
        future.exception()
