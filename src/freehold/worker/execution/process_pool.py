"""Child processes for handlers that must be killable: CPU-bound, leaking, crashing.

A child runs one attempt at a time and is kept for the next. Orders, log lines and outcomes are
sent as JSON over a pipe; nothing is pickled. Parent and child share a second pipe, the lifeline:
when the parent is gone, for whatever reason, the child ends at once, so that no orphan runs on
without a lease.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import os
import signal
import threading
from dataclasses import replace
from multiprocessing import resource_tracker

import msgspec

from freehold.extensions import child_preparations
from freehold.model.job import ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.tasks import Registry, TaskDefinition
from freehold.worker.execution import process_child
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLogBuffer
from freehold.worker.job_log.child_pipe import ChildDone, append_child_log, decode_message

#: Between the signal that stops a handler and the one that kills its process.
KILL_SECONDS = 2.0
#: So long a child may take to end by itself.
CLOSE_SECONDS = 5.0
_CHECK_SECONDS = 0.5
#: Bytes. Far above any message; garbage in the place of a length would be waited for without end.
_MESSAGE_LIMIT = 2**28


class _Child:
    """One process and the parent's ends of its pipes."""

    def __init__(self, setup: process_child.ChildSetup, close_seconds: float) -> None:
        self.ended_jobs = 0
        self._close_seconds = close_seconds
        self.closed = threading.Event()
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        lifeline, self._lifeline = spawn.Pipe(duplex=False)
        self.process = spawn.Process(
            target=process_child.main,
            args=(theirs, lifeline, setup),
            name="freehold-child",
            daemon=True,
        )
        resource_tracker.ensure_running()  # the first start would do it, and unblock the signals
        before = signal.pthread_sigmask(signal.SIG_BLOCK, process_child.GROUP_SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        lifeline.close()

    def call(self, order: process_child.ChildOrder, buffer: JobLogBuffer | None) -> Outcome:
        """Blocks until the child has ended the attempt or died."""
        try:
            self._pipe.send_bytes(msgspec.json.encode(order))
            while True:
                self._wait_for_message()
                message = decode_message(self._pipe.recv_bytes(_MESSAGE_LIMIT))
                if isinstance(message, ChildDone):
                    return message.outcome
                if buffer is not None:
                    append_child_log(message, buffer)
        except (EOFError, OSError) as error:
            self.process.join(KILL_SECONDS)
            return self._kill(error) if self.is_usable else _died(self.process.exitcode)
        except Exception as error:
            return self._kill(error)

    def _kill(self, error: Exception) -> Outcome:
        """After a message that cannot be read, the next ones cannot be trusted either. The pool
        replaces a dead child."""
        self.process.kill()
        self.process.join(KILL_SECONDS)
        text = f"its process broke the pipe to its worker and was killed: {error}"
        return Outcome(kind=OutcomeKind.ERROR, reason=text, error=ErrorInfo("ProcessDied", text))

    def _wait_for_message(self) -> None:
        """Checks the process too: a grandchild may hold the pipe open after the child has died."""
        while not self._pipe.poll(_CHECK_SECONDS):
            if not self.process.is_alive() and not self._pipe.poll(0):
                raise EOFError

    def signal(self, number: signal.Signals) -> None:
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, number)

    @property
    def is_usable(self) -> bool:
        return self.process.is_alive()

    def close(self) -> None:
        """At the end of its pipe an idle child ends by itself, at that of the lifeline at once."""
        self._pipe.close()
        self.process.join(self._close_seconds)
        self._lifeline.close()
        self.process.join(KILL_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.closed.set()


#: Real-time signals have no name.
_NAMES = {number.value: number.name for number in signal.Signals}


def _died(code: int | None) -> Outcome:
    how = f"exit code {code}"
    if code is not None and code < 0:
        how = f"signal {_NAMES.get(-code, -code)}"
        if -code == signal.SIGKILL:
            how += " (out of memory?)"
    text = f"its process died: {how}"
    return Outcome(kind=OutcomeKind.ERROR, reason=text, error=ErrorInfo("ProcessDied", text))


class ProcessPool:
    """Idle children, kept for the next attempt."""

    def __init__(
        self,
        threads: ThreadPool,
        tenant: str | None,
        setup: process_child.ChildSetup,
        max_jobs: int,
        tasks: Registry,
    ) -> None:
        """``max_jobs``: a child is replaced after so many; 0: never."""
        self._tasks = tasks
        self._max_jobs = max_jobs
        self._threads = threads
        self._setup = setup
        self._tenant = tenant
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        #: Not used again; they close what they have opened.
        self._retiring: set[_Child] = set()

    async def run(self, definition: TaskDefinition, lease: HeldLease) -> Outcome | None:
        """Returns None if the attempt ended because of its stop."""
        loop = asyncio.get_running_loop()
        child = await self._threads.run(self._idle_or_new)
        self._busy.add(child)
        kill: list[asyncio.TimerHandle] = []

        def stop() -> None:
            if child not in self._busy:  # too late: the child may run another attempt by now
                return
            child.signal(process_child.STOP_SIGNAL)
            kill.append(loop.call_later(KILL_SECONDS, child.signal, signal.SIGKILL))

        def on_stop(_reason: StopReason) -> None:
            loop.call_soon_threadsafe(stop)

        lease.on_stop = on_stop
        if lease.stop_reason is not None:
            stop()
        function = definition.function
        order = process_child.ChildOrder(
            function.__module__, function.__qualname__, lease.attempt, self._tenant
        )
        call = functools.partial(child.call, order, lease.log_buffer)
        outcome: Outcome = await self._threads.run(call)
        self._busy.discard(child)
        for timer in kill:
            timer.cancel()
        if lease.stop_reason is not None:
            # A child that was sent a signal is not used again: the signal may arrive late.
            self._retire(child)
            return None if outcome.kind is not OutcomeKind.SUCCESS else outcome
        child.ended_jobs += 1
        if child.ended_jobs == self._max_jobs:
            self._retire(child)
        elif child.is_usable:
            self._idle.append(child)
        return outcome

    def _retire(self, child: _Child) -> None:
        self._retiring = {each for each in self._retiring if not each.closed.is_set()} | {child}
        self._threads.run(child.close)

    def _idle_or_new(self) -> _Child:
        while True:
            try:
                child = self._idle.pop()
            except IndexError:  # other threads take some too
                return _Child(self._child_setup, self._close_seconds)
            if child.is_usable:
                return child

    @property
    def _child_setup(self) -> process_child.ChildSetup:
        return replace(self._setup, prepare=tuple(child_preparations))

    @property
    def _close_seconds(self) -> float:
        """For what the app has opened in a child, and for what extensions have not yet sent."""
        tasks = self._tasks
        return CLOSE_SECONDS if tasks.lifespan or tasks.extensions.attempts else 0.0

    def close(self) -> None:
        """Kills busy children, which were given up: they must not keep this process alive."""
        for child in self._busy:
            child.process.kill()
        while self._idle:
            self._idle.pop().close()
        for child in self._retiring:
            child.closed.wait(self._close_seconds)
