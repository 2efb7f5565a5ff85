"""Plays a program, whether it has tenants or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from leasehold.clock import VirtualClock
from leasehold.simulation.hosts import HostLoop
from leasehold.simulation.program import Program
from leasehold.simulation.town import Town
from leasehold.simulation.world import Played, World
from leasehold.store.database import Database
from leasehold.store.opening import open_memory
from leasehold.telemetry import log


def play(program: Program, open_store: Callable[[VirtualClock], Database] = open_memory) -> Played:
    """The same program gives the same answer, to the microsecond."""
    clock = VirtualClock()
    with contextlib.ExitStack() as stack:

        def opened() -> Database:
            return stack.enter_context(contextlib.closing(open_store(clock)))

        world: World | Town
        if program.tenants:
            world = Town(program, clock, opened(), [opened() for _ in program.tenants])
        else:
            world = World(program, clock, opened())
        with _quiet(), asyncio.Runner(loop_factory=lambda: HostLoop(clock)) as runner:
            runner.run(world.run())
        return world.judged()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Workers in trouble say so; here trouble is the point."""
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was
