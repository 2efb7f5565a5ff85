"""The other end of a child process: orders in, words and outcomes out."""

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
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from freehold.decoders import decoder
from freehold.errors import BadArguments
from freehold.model.job import Attempt
from freehold.model.outcome import Outcome
from freehold.signature import CONTEXT_PARAMETER
from freehold.tasks import Task
from freehold.worker.execution import outcomes
from freehold.worker.execution.context import Context, NoFences
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLog
from freehold.worker.job_log.child_pipe import ChildDone, ChildLog, ChildLogPipe

#: Asks the handler to stop. Not SIGTERM, which reaches children whenever somebody signals a
#: whole group: when a child has to stop is for its parent to decide.
STOP_SIGNAL = signal.SIGUSR1
#: What a group may get; the parent starts its children with these blocked.
GROUP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


class Stopped(BaseException):
    """Raised in the handler when the parent asks it to stop."""


class ChildOrder(msgspec.Struct, frozen=True):
    """What a child is to do: which function, and the attempt with its arguments."""

    module: str
    qualname: str
    attempt: Attempt
    tenant: str | None


_decode_order = decoder(ChildOrder).decode


def main(pipe: Connection, lifeline: Connection) -> None:
    """Serve orders until the parent closes the pipe."""
    for number in GROUP_SIGNALS:  # a handler, because programs started here would inherit SIG_IGN
        signal.signal(number, _unmoved)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    own = os.getpid()
    while True:
        try:
            order = _decode_order(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        teller = ChildLogPipe(order.attempt.number, functools.partial(_send, pipe))
        outcome = _run(order, teller.notepad)
        if os.getpid() != own:  # the handler forked, and this is not the one who was asked
            os._exit(0)
        teller.close()
        _send(pipe, ChildDone(outcome))


def _send(pipe: Connection, message: ChildLog | ChildDone) -> None:
    with contextlib.suppress(OSError):  # the parent is gone, and so are we in a moment
        pipe.send_bytes(msgspec.json.encode(message))


def _unmoved(_number: int, _frame: Any) -> None:
    """The parent has got the signal too."""


def _end_with_parent(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


def _run(order: ChildOrder, voice: JobLog) -> Outcome:
    began = time.monotonic()
    held = HeldLease(order.attempt, valid_until=float("inf"))

    def on_signal(_number: int, _frame: Any) -> None:
        held.stop_reason = StopReason.CANCELED
        raise Stopped

    signal.signal(STOP_SIGNAL, on_signal)
    try:
        task = _find(order.module, order.qualname)
        retry = task.definition.policy.retry
    except Exception as error:
        return outcomes.of_undecodable(BadArguments(f"its task cannot be imported: {error}"))
    try:
        value = _call(task, held, voice, order.tenant)
        return outcomes.of_result(value, time.monotonic() - began)
    except BadArguments as error:
        return outcomes.of_undecodable(error)
    except BaseException as error:
        return outcomes.of_exception(error, retry, time.monotonic() - began)
    finally:
        signal.signal(STOP_SIGNAL, signal.SIG_DFL)


def _call(task: Task[Any, Any, Any], held: HeldLease, voice: JobLog, tenant: str | None) -> Any:
    function = task.definition.function
    args, kwargs = task.definition.signature.decode(held.attempt.args)
    if task.definition.signature.wants_context:
        kwargs[CONTEXT_PARAMETER] = Context(held, time.monotonic, voice, NoFences(), tenant)
    if inspect.iscoroutinefunction(function):
        return asyncio.run(function(*args, **kwargs))
    return function(*args, **kwargs)


def _find(module: str, qualname: str) -> Task[Any, Any, Any]:
    """The task behind its function's name; the decorator has put it there."""
    if module == "__main__" and "__mp_main__" in sys.modules:
        found: Any = sys.modules["__mp_main__"]
    else:
        found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, Task):
        raise TypeError(f"{module}.{qualname} is not a task any more")
    return found
