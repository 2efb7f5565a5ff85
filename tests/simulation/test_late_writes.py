"""Writes that their senders gave up arrive in the end, whatever has become of the sender."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

from freehold.clock import VirtualClock
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.store.open import open_memory
from freehold.store.statements import Statement, StatementGroup


def test_a_late_write_of_a_dead_machine_arrives_and_is_no_longer_awaited() -> None:
    """Or the run would wait for it until its last deadline."""
    clock, faults = VirtualClock(), list[str]()
    machine = Machine("w1")
    group = StatementGroup((Statement("remove_worker", {"owner": "w1"}),), writes=True)

    async def send_and_die(network: Network) -> None:
        network.link(machine)._arrive_later(group, 0.1)
        machine.is_dead = True

    async def world(network: Network) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        await loop.spawn(machine, send_and_die(network), "w1")
        assert len(network.arriving) == 1
        await asyncio.sleep(20)
        assert faults == ["arrived_late"]
        assert not network.arriving

    with contextlib.closing(open_memory(clock)) as database:
        network = Network(
            database,
            clock,
            "seed",
            lambda *_: None,
            lambda _machine, kind, _to: faults.append(kind),
        )
        with asyncio.Runner(loop_factory=lambda: MachineLoop(clock)) as runner:
            runner.run(world(network))
