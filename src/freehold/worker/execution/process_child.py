"""The main loop of a child process: receives orders, sends log lines and outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from freehold.decoders import decoder
from freehold.model.job import Attempt
from freehold.model.outcome import Outcome
from freehold.signature import CONTEXT_PARAMETER
from freehold.tasks import Task
from freehold.telemetry import running_attempt, running_tenant
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Context, NoTransactions
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
    own, is_set_up = os.getpid(), False
    while True:
        try:
            order = _decode_order(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        log_pipe = ChildLogPipe(order.attempt.number, functools.partial(_send, pipe))
        outcome = None if is_set_up else _set_up(setup, order)
        is_set_up = outcome is None
        outcome = outcome or _run(order, log_pipe.buffer)
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
        if setup.app_module is not None:
            importlib.import_module(setup.app_module)
    except BaseException as error:
        return outcomes.of_exception(error, order.attempt.policy.retry, 0.0, order.attempt)
    finally:
        if setup.set_up_logs is not None:
            setup.set_up_logs()
    return None


def _run(order: ChildOrder, job_log: JobLog) -> Outcome:
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
            value = _call(task, lease, job_log, order.tenant)
        finally:
            has_ended = True
        return outcomes.of_result(value, time.monotonic() - began, order.attempt)
    except BaseException as error:
        return outcomes.of_exception(error, retry, time.monotonic() - began, order.attempt)
    finally:
        signal.signal(STOP_SIGNAL, signal.SIG_DFL)


def _call(task: Task[Any, Any, Any], lease: HeldLease, job_log: JobLog, tenant: str | None) -> Any:
    function = task.definition.function
    args, kwargs = task.definition.signature.decode(lease.attempt.args)
    ctx = Context(lease, time.monotonic, job_log, NoTransactions(), tenant)
    if task.definition.signature.wants_context:
        kwargs[CONTEXT_PARAMETER] = ctx
    call: Callable[[], Any] = functools.partial(function, *args, **kwargs)
    is_coroutine, extensions = inspect.iscoroutinefunction(function), task._app._extensions
    if extensions.attempts:
        call = extensions.around(call, ctx, is_coroutine=is_coroutine)
    return asyncio.run(call()) if is_coroutine else call()


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
