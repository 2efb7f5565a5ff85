"""Runs a scenario, with or without tenants."""

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
    scenario: Scenario, open_store: Callable[[VirtualClock], Database] = open_memory
) -> SimulationResult:
    """The same scenario gives the same result, to the microsecond."""
    clock = VirtualClock()
    with contextlib.ExitStack() as stack:

        def opened() -> Database:
            return stack.enter_context(contextlib.closing(open_store(clock)))

        world: World | TenantWorld
        if scenario.tenants:
            world = TenantWorld(scenario, clock, opened(), [opened() for _ in scenario.tenants])
        else:
            world = World(scenario, clock, opened())
        with _quiet(), asyncio.Runner(loop_factory=lambda: MachineLoop(clock)) as runner:
            runner.run(world.run())
        return world.evaluate()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Turns off the log: the workers' warnings about faults are expected here."""
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was
