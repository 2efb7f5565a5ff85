"""Machines on one virtual loop: each can freeze, die, and have a clock that runs fast or slow.

Whatever a machine does on the loop carries its name in its context. While the machine is frozen
its callbacks are put aside, as SIGSTOP does, and come in their order when it goes on; those of a
dead machine never come. So nothing of the worker has to know that it is simulated.
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
#: Whose callback is running; None: the world's own.
MACHINE: ContextVar[Machine | None] = ContextVar("machine", default=None)


@dataclass(frozen=True, slots=True)
class FaultTrigger:
    """The worst moment for a fault: just when an ending or a renewal is sent, or a claim was
    executed."""

    statements: frozenset[str]
    #: Told what was sent, and over which network.
    spring: Callable[[StatementGroup, Any], None]


class Machine:
    """A machine: a worker's, a client's or an operator's."""

    def __init__(self, name: str, rate: float = 1.0) -> None:
        self.name = name
        #: How fast its monotonic clock runs.
        self.rate = rate
        self.is_frozen = False
        self.is_dead = False
        #: Until when it cannot reach the store, by the world's clock; and how that shows.
        self.cut_off_until = 0
        self.hangs_while_cut_off = False
        #: What befalls it as soon as it sends the next such statement.
        self.ambush: FaultTrigger | None = None
        self.put_aside: list[asyncio.Handle] = []


class MachineLoop(VirtualLoop):
    """A virtual loop that knows whose callbacks it runs."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._queue: deque[Any] = self._ready  # type: ignore[attr-defined]
        #: By time, then in the order in which they were set.
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        host = MACHINE.get()
        now = (self.clock.micros - self._origin) / _MICROS
        return now if host is None else now * host.rate

    def _run_once(self) -> None:
        """As asyncio's own; but nothing here has a thread or a socket to look for, and what
        belongs to a machine that stands still is put aside."""
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
            host = handle._context.get(MACHINE)
            if host is not None and (host.is_frozen or host.is_dead):
                host.put_aside.append(handle)
            elif not handle._cancelled:
                handle._run()

    def _jump(self) -> None:
        """To the next timer."""
        if not self._timers:
            raise self.nothing_left()
        wait = self._timers[0][0] - (self.clock.micros - self._origin) / _MICROS
        if wait > 0:
            self.let_pass(wait)

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """There are no other threads: nobody has to be woken."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        host = MACHINE.get()
        real = when if host is None else when / host.rate
        timer = asyncio.TimerHandle(real, callback, args, self, context)
        heapq.heappush(self._timers, (real, next(self._numbers), timer))
        return timer

    def spawn(self, host: Machine, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Work of a machine, and all that comes of it."""
        context = contextvars.copy_context()
        context.run(MACHINE.set, host)
        return self.create_task(work, name=name, context=context)

    def go_on(self, host: Machine) -> None:
        """A frozen machine goes on where it stopped, with all that fell due meanwhile."""
        host.is_frozen = host.is_dead = False
        waiting, host.put_aside = host.put_aside, []
        self._queue.extend(waiting)
