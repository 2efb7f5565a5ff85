"""The main loop of a child process: receives orders, sends log lines and outcomes.

It has one event loop for its whole life, because what a lifespan opens belongs to one.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from freehold.decoders import decoder
from freehold.lifespan import NOT_OPENED, Lifespan, enter_lifespan
from freehold.model.job import Attempt
from freehold.model.outcome import Outcome
from freehold.tasks import Task
from freehold.telemetry import running_attempt, running_tenant
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Context, with_context
from freehold.worker.execution.handler_store import NoStore
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLog
from freehold.worker.job_log.child_pipe import ChildDone, ChildLog, ChildLogPipe

#: Stops the handler. Not SIGTERM, which a signal to the process group would also deliver to the
#: child: only the parent decides when a child stops.
STOP_SIGNAL = signal.SIGUSR1
#: Signals that a process group may get. The parent starts its children with these blocked.
GROUP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


class Stopped(BaseException):
    """Raised in the handler when the parent stops it."""


@dataclass(frozen=True, slots=True)
class ChildSetup:
    """What a child does before its first order. It is passed to the process when it starts."""

    #: The module of the app, which may prepare what the modules of its tasks need.
    app_module: str | None = None
    #: A function of a module, as in the parent: the app may have set up logs of its own before.
    set_up_logs: Callable[[], None] | None = None
    #: Functions of modules, called before the app is imported.
    prepare: tuple[Callable[[], None], ...] = ()


class ChildOrder(msgspec.Struct, frozen=True):
    """The function that a child has to call, and the attempt with its arguments."""

    module: str
    qualname: str
    attempt: Attempt
    tenant: str | None


_decode_order = decoder(ChildOrder).decode


def main(pipe: Connection, lifeline: Connection, setup: ChildSetup) -> None:
    """Runs orders until the parent closes the pipe."""
    for number in GROUP_SIGNALS:  # not SIG_IGN, which programs started here would inherit
        signal.signal(number, _ignore_signal)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    own, is_set_up, lifespans = os.getpid(), False, OpenLifespans()
    while True:
        try:
            order = _decode_order(pipe.recv_bytes())
        except (EOFError, OSError):
            lifespans.close()
            return
        log_pipe = ChildLogPipe(order.attempt.number, functools.partial(_send, pipe))
        outcome = None if is_set_up else _set_up(setup, order)
        is_set_up = outcome is None
        outcome = outcome or _run(order, log_pipe.buffer, lifespans)
        if os.getpid() != own:  # the handler forked, and this is its child
            os._exit(0)
        log_pipe.close()
        _send(pipe, ChildDone(outcome))


def _send(pipe: Connection, message: ChildLog | ChildDone) -> None:
    with contextlib.suppress(OSError):  # the parent is gone, and this process ends soon
        pipe.send_bytes(msgspec.json.encode(message))


def _ignore_signal(_number: int, _frame: Any) -> None:
    """The parent has received the signal too, and decides."""


def _end_with_parent(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


def _set_up(setup: ChildSetup, order: ChildOrder) -> Outcome | None:
    """The outcome of the attempt if the app cannot be imported; the next attempt tries again."""
    try:
        for prepare in setup.prepare:
            prepare()
        if setup.app_module is not None:
            importlib.import_module(setup.app_module)
    except BaseException as error:
        return outcomes.of_exception(error, order.attempt.policy.retry, 0.0, order.attempt)
    finally:
        if setup.set_up_logs is not None:
            setup.set_up_logs()
    return None


class OpenLifespans:
    """What this process has opened, each at the first job of its app, and its event loop."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        self._opened: dict[Lifespan, Any] = {}

    def deps_of(self, lifespan: Lifespan | None) -> Any:
        if lifespan is None:
            return NOT_OPENED
        if lifespan not in self._opened:
            self._opened[lifespan] = self._runner.run(enter_lifespan(self._stack, lifespan))
        return self._opened[lifespan]

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """A stop can end the loop where it waits: then the handler is canceled, so that it ends
        before what it uses does."""
        loop = self._runner.get_loop()
        task = loop.create_task(coroutine, context=contextvars.copy_context())
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if task.cancel():
                loop.run_until_complete(asyncio.wait({task}))
            raise

    def close(self) -> None:
        if self._opened:
            self._runner.run(self._stack.aclose())
        self._runner.close()


def _run(order: ChildOrder, job_log: JobLog, lifespans: OpenLifespans) -> Outcome:
    began = time.monotonic()
    running_attempt.set(order.attempt)
    running_tenant.set(order.tenant)
    lease = HeldLease(order.attempt, valid_until=float("inf"))
    has_ended = False

    def on_signal(_number: int, _frame: Any) -> None:
        lease.stop_reason = StopReason.CANCELED
        if not has_ended:
            raise Stopped

    signal.signal(STOP_SIGNAL, on_signal)
    retry = order.attempt.policy.retry
    try:
        task = _find(order.module, order.qualname)
        retry = task.definition.policy.retry
        try:
            value = _call(task, lease, job_log, order.tenant, lifespans)
        finally:
            has_ended = True
        return outcomes.of_result(value, time.monotonic() - began, order.attempt)
    except BaseException as error:
        return outcomes.of_exception(error, retry, time.monotonic() - began, order.attempt)
    finally:
        signal.signal(STOP_SIGNAL, signal.SIG_DFL)


def _call(
    task: Task[Any, Any, Any],
    lease: HeldLease,
    job_log: JobLog,
    tenant: str | None,
    lifespans: OpenLifespans,
) -> Any:
    definition, tasks = task.definition, task._app._registry
    args, kwargs = definition.signature.decode(lease.attempt.args)
    deps = lifespans.deps_of(tasks.lifespan)
    ctx: Context[Any] = Context(lease, time.monotonic, job_log, NoStore(), tenant, deps)
    call = with_context(
        definition, tasks, ctx, functools.partial(definition.function, *args, **kwargs)
    )
    if not definition.is_coroutine:
        return call()
    return asyncio.run(call()) if tasks.lifespan is None else lifespans.run(call())


def _find(module: str, qualname: str) -> Task[Any, Any, Any]:
    """The task that the decorator has put in place of its function."""
    if module == "__main__" and "__mp_main__" in sys.modules:
        found: Any = sys.modules["__mp_main__"]
    else:
        found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, Task):
        raise TypeError(f"{module}.{qualname} is not a task any more")
    return found
