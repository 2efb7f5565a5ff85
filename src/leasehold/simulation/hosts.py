"""Machines on one virtual loop: each can freeze, die, and have a clock that runs fast or slow.

Whatever a machine does on the loop carries its name in its context. While the machine is frozen
its callbacks are put aside, as SIGSTOP does, and come in their order when it goes on; those of a
dead machine never come. So nothing of the worker has to know that it is simulated.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVarTuple, Unpack

from leasehold.clock import VirtualClock
from leasehold.store.steps import Batch
from leasehold.testing.loop import VirtualLoop

Ts = TypeVarTuple("Ts")

#: Whose callback is running; None: the world's own.
HOST: ContextVar[Host | None] = ContextVar("host", default=None)


@dataclass(frozen=True, slots=True)
class Ambush:
    """The worst moment for a fault: just when an ending or a renewal is sent, or a claim was
    executed."""

    statements: frozenset[str]
    #: Told what was sent, and over which network.
    spring: Callable[[Batch, Any], None]


class Host:
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
        self.ambush: Ambush | None = None
        self.put_aside: list[asyncio.Handle] = []


class _HostHandle(asyncio.Handle):
    __slots__ = ()

    def _run(self) -> None:
        if not _is_put_aside(self):
            super()._run()


class _HostTimer(asyncio.TimerHandle):
    __slots__ = ()

    def _run(self) -> None:
        if not _is_put_aside(self):
            super()._run()


def _is_put_aside(handle: Any) -> bool:
    host = handle._context.get(HOST)
    if host is None or not (host.is_frozen or host.is_dead):
        return False
    host.put_aside.append(handle)
    return True


class HostLoop(VirtualLoop):
    """A virtual loop that knows whose callbacks it runs."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._queue: Any = self._ready  # type: ignore[attr-defined]
        self._start = clock.micros
        # Nothing here has a thread or a socket: there is nothing to look for.
        self._files.select = self._jump  # type: ignore[method-assign]

    def time(self) -> float:
        host = HOST.get()
        now = (self.clock.micros - self._start) / 1_000_000
        return now if host is None else now * host.rate

    def _jump(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise self.nothing_left()
        if timeout > 0:
            self.let_pass(timeout)
        return []

    def _call_soon(self, callback: Any, args: Any, context: Any) -> asyncio.Handle:
        handle = _HostHandle(callback, args, self, context)
        self._queue.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """There are no other threads: nobody has to be woken."""
        return self._call_soon(callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        host = HOST.get()
        real = when if host is None else when / host.rate
        timer: Any = _HostTimer(real, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True
        return timer  # type: ignore[no-any-return]

    def spawn(self, host: Host, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Work of a machine, and all that comes of it."""
        context = contextvars.copy_context()
        context.run(HOST.set, host)
        return self.create_task(work, name=name, context=context)

    def go_on(self, host: Host) -> None:
        """A frozen machine goes on where it stopped, with all that fell due meanwhile."""
        host.is_frozen = host.is_dead = False
        waiting, host.put_aside = host.put_aside, []
        self._queue.extend(waiting)
