"""Child processes for handlers that must be killable: CPU-bound, leaking, crashing.

A child runs one attempt at a time and is kept for the next. Requests, words and outcomes
travel as JSON over a pipe; nothing is pickled. Parent and child share a lifeline: when the
parent is gone, for whatever reason, the child ends at once, so that no orphan works on without
a lease.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import os
import signal
from multiprocessing import resource_tracker

import msgspec

from freehold.model.job import Error
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.tasks import TaskDefinition
from freehold.worker.execution import process_child
from freehold.worker.execution.thread_pool import ThreadPool
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLogBuffer
from freehold.worker.job_log.child_pipe import ChildDone, message_of, write_down

#: Between the signal that asks a child to end and the one that ends it.
KILL_SECONDS = 2.0
_LOOK_SECONDS = 0.5


class _Child:
    """One process and the parent's ends of its pipes."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        lifeline, self._lifeline = spawn.Pipe(duplex=False)
        self.process = spawn.Process(
            target=process_child.main, args=(theirs, lifeline), name="freehold-child", daemon=True
        )
        resource_tracker.ensure_running()  # the first child would do so, and unblock signals again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, process_child.GROUP_SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        lifeline.close()

    def call(self, order: process_child.ChildOrder, notepad: JobLogBuffer | None) -> Outcome:
        """Blocks until the child has ended the attempt, or dies."""
        try:
            self._pipe.send_bytes(msgspec.json.encode(order))
            while True:
                self._await_word()
                message = message_of(self._pipe.recv_bytes())
                if isinstance(message, ChildDone):
                    return message.outcome
                if notepad is not None:
                    write_down(message, notepad)
        except (EOFError, OSError):
            self.process.join(KILL_SECONDS)
            return _died(self.process.exitcode)

    def _await_word(self) -> None:
        """A grandchild may hold the pipe open, so that its end does not tell of the child's."""
        while not self._pipe.poll(_LOOK_SECONDS):
            if not self.process.is_alive() and not self._pipe.poll(0):
                raise EOFError

    def signal(self, number: signal.Signals) -> None:
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, number)

    @property
    def is_usable(self) -> bool:
        return self.process.is_alive()

    def close(self) -> None:
        self._lifeline.close()
        self._pipe.close()
        self.process.join(KILL_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


#: Real-time signals have none.
_NAMES = {number.value: number.name for number in signal.Signals}


def _died(code: int | None) -> Outcome:
    how = f"exit code {code}"
    if code is not None and code < 0:
        how = f"signal {_NAMES.get(-code, -code)}"
        if -code == signal.SIGKILL:
            how += " (out of memory?)"
    text = f"its process died: {how}"
    return Outcome(kind=OutcomeKind.ERROR, reason=text, error=Error("ProcessDied", text))


class ProcessPool:
    """Idle children, kept for the next attempt."""

    def __init__(self, threads: ThreadPool, tenant: str | None) -> None:
        self._threads = threads
        self._tenant = tenant
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()

    async def run(self, definition: TaskDefinition, held: HeldLease) -> Outcome | None:
        """None: it ended because it was told to."""
        loop = asyncio.get_running_loop()
        worker = await self._threads.run(self._take)
        self._busy.add(worker)
        kill: list[asyncio.TimerHandle] = []

        def stop() -> None:
            if worker not in self._busy:  # said too late: by now it may be somebody else's
                return
            worker.signal(process_child.STOP_SIGNAL)
            kill.append(loop.call_later(KILL_SECONDS, worker.signal, signal.SIGKILL))

        def on_stop(_reason: StopReason) -> None:
            loop.call_soon_threadsafe(stop)

        held.on_stop = on_stop
        if held.stop_reason is not None:
            stop()
        function = definition.function
        order = process_child.ChildOrder(
            function.__module__, function.__qualname__, held.attempt, self._tenant
        )
        call = functools.partial(worker.call, order, held.notes)
        outcome: Outcome = await self._threads.run(call)
        self._busy.discard(worker)
        for timer in kill:
            timer.cancel()
        if held.stop_reason is not None:
            # A child that was signalled is not used again: the signal may arrive late.
            self._threads.run(worker.close)
            return None if outcome.kind is not OutcomeKind.SUCCESS else outcome
        if worker.is_usable:
            self._idle.append(worker)
        return outcome

    def _take(self) -> _Child:
        while True:
            try:
                worker = self._idle.pop()
            except IndexError:  # other threads take some too
                return _Child()
            if worker.is_usable:
                return worker

    def close(self) -> None:
        """What is still busy was given up: it does not keep this process from ending."""
        for worker in self._busy:
            worker.process.kill()
        while self._idle:
            self._idle.pop().close()
