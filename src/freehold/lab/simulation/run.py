"""Plays a program, whether it has tenants or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from freehold.clock import VirtualClock
from freehold.lab.simulation.machine import MachineLoop
from freehold.lab.simulation.scenario import Scenario
from freehold.lab.simulation.tenant_world import TenantWorld
from freehold.lab.simulation.world import SimulationResult, World
from freehold.store.database import Database
from freehold.store.open import open_memory
from freehold.telemetry import log


def run_scenario(
    program: Scenario, open_store: Callable[[VirtualClock], Database] = open_memory
) -> SimulationResult:
    """The same program gives the same answer, to the microsecond."""
    clock = VirtualClock()
    with contextlib.ExitStack() as stack:

        def opened() -> Database:
            return stack.enter_context(contextlib.closing(open_store(clock)))

        world: World | TenantWorld
        if program.tenants:
            world = TenantWorld(program, clock, opened(), [opened() for _ in program.tenants])
        else:
            world = World(program, clock, opened())
        with _quiet(), asyncio.Runner(loop_factory=lambda: MachineLoop(clock)) as runner:
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
