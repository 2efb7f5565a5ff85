"""Machines on one virtual loop: each can freeze, die, and have a clock that runs fast or slow.

Every callback has its machine in its context. While the machine is frozen, as by SIGSTOP, its
callbacks are deferred, and they run in order when it resumes; those of a dead machine never run.
The worker's code therefore needs no knowledge of the simulation.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVarTuple, Unpack

from freehold.clock import VirtualClock
from freehold.store.statements import StatementGroup
from freehold.testing.virtual_loop import VirtualLoop

Ts = TypeVarTuple("Ts")

_MICROS = 1_000_000
#: The machine of the running callback; None: the world itself.
MACHINE: ContextVar[Machine | None] = ContextVar("machine", default=None)


@dataclass(frozen=True, slots=True)
class FaultTrigger:
    """A fault at the worst time: just when an ending or a renewal is sent, or after a claim was
    executed."""

    statements: frozenset[str]
    #: Called with the group and its network.
    fire: Callable[[StatementGroup, Any], None]


class Machine:
    """The machine of a worker, a client or an operator."""

    def __init__(self, name: str, rate: float = 1.0) -> None:
        self.name = name
        #: How fast its monotonic clock runs.
        self.rate = rate
        self.is_frozen = False
        self.is_dead = False
        #: Until when it cannot reach the store, in microseconds of the world's clock; whether its
        #: connections hang meanwhile or are refused.
        self.cut_off_until = 0
        self.hangs_while_cut_off = False
        #: The fault that its next matching statement causes.
        self.trigger: FaultTrigger | None = None
        self.deferred: list[asyncio.Handle] = []


class MachineLoop(VirtualLoop):
    """A virtual loop that knows the machine of each callback."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._queue: deque[Any] = self._ready  # type: ignore[attr-defined]
        #: By time, then in the order in which they were set.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        machine = MACHINE.get()
        now = (self.clock.micros - self._origin) / _MICROS
        return now if machine is None else now * machine.rate

    def _run_once(self) -> None:
        """Like asyncio's own, but without threads and sockets, and with the callbacks of frozen
        and dead machines deferred."""
        timers, queue = self._timers, self._queue
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not queue and not self._stopping:  # type: ignore[attr-defined]
            self._jump()
        end = (self.clock.micros - self._origin + 1) / _MICROS
        while timers and timers[0][0] < end:
            queue.append(heapq.heappop(timers)[2])
        for _ in range(len(queue)):
            handle = queue.popleft()
            machine = handle._context.get(MACHINE)
            if machine is not None and (machine.is_frozen or machine.is_dead):
                machine.deferred.append(handle)
            elif not handle._cancelled:
                handle._run()

    def _jump(self) -> None:
        """Advances the clock to the next timer."""
        if not self._timers:
            raise self.nothing_left()
        wait = self._timers[0][0] - (self.clock.micros - self._origin) / _MICROS
        if wait > 0:
            self.skip(wait)

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """There is only one thread, so the loop needs no wake-up."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        machine = MACHINE.get()
        real = when if machine is None else when / machine.rate
        timer = asyncio.TimerHandle(real, callback, args, self, context)
        heapq.heappush(self._timers, (real, next(self._numbers), timer))
        return timer

    def spawn(
        self, machine: Machine, work: Coroutine[Any, Any, Any], name: str
    ) -> asyncio.Task[Any]:
        """Runs a task, and everything that it starts, on a machine."""
        context = contextvars.copy_context()
        context.run(MACHINE.set, machine)
        return self.create_task(work, name=name, context=context)

    def resume(self, machine: Machine) -> None:
        """Runs the callbacks of a machine that were deferred."""
        machine.is_frozen = machine.is_dead = False
        waiting, machine.deferred = machine.deferred, []
        self._queue.extend(waiting)
