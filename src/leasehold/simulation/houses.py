"""Machines that serve all tenants: each runs the real host, with a line to every store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from leasehold.clock import VirtualClock
from leasehold.simulation.hosts import Host as Computer
from leasehold.simulation.machines import Machines, Scribe, chance_of, settings_of
from leasehold.simulation.network import Line, Network
from leasehold.simulation.places import LinePlace
from leasehold.simulation.program import TenantPlan, WorkerPlan
from leasehold.store.database import Database
from leasehold.tasks import Registry
from leasehold.tenancy.known import KnownPlaces
from leasehold.tenancy.serving import Served
from leasehold.testing.host import virtual_host
from leasehold.worker.capacity import KEEP_FROM
from leasehold.worker.host import Host
from leasehold.worker.worker import Worker


class Wires:
    """All lines of a machine: they break together."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines

    async def left_behind(self) -> None:
        for line in self._lines:
            await line.left_behind()

    async def break_off(self) -> None:
        for line in self._lines:
            await line.break_off()

    def tell_listener(self, hint: str | None) -> None:
        for line in self._lines:
            line.tell_listener(hint)


class ToldDirectory(Served):
    """The real directory; what a host says of tenants is also told to the world."""

    def __init__(
        self, control: Database, places: Mapping[str, LinePlace],
        degraded: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        super().__init__(control, cast(KnownPlaces, places), None)
        self._degraded = degraded

    async def degrade(self, tenant: str, why: str) -> None:
        self._degraded(tenant, why)
        await super().degrade(tenant, why)


class Houses(Machines):
    """All machines of a town."""

    def __init__(
        self, scribe: Scribe, control: Network, networks: Mapping[str, Network],
        tenants: Sequence[TenantPlan], tasks: Registry, clock: VirtualClock,
        degraded: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        super().__init__(scribe, control, tasks, clock)
        self._networks = networks
        self._tenants = tenants
        self._degraded = degraded
        self._hosts: dict[str, Host] = {}

    def _build(
        self, plan: WorkerPlan, host: Computer, _seat: tuple[Path, int] | None
    ) -> tuple[Line, Worker]:
        control = self._network.line(host)
        lines = {
            tenant: network.line(host, is_deaf=plan.is_deaf)
            for tenant, network in self._networks.items()
        }
        places = {
            name: LinePlace(name, {t.name: lines[t.name] for t in self._tenants if t.place == name})
            for name in sorted({tenant.place for tenant in self._tenants})
        }
        numbers = itertools.count(1)
        house = virtual_host(
            ToldDirectory(cast(Database, control), places, self._degraded),
            self._known_to(plan),
            settings_of(plan),
            chance=chance_of(plan),
            name_worker=lambda: f"{plan.name}/{next(numbers)}",
        )
        self._hosts[plan.name] = house
        # Whoever breaks machines treats it as any other: it drains and hurries as a worker does.
        return cast(Line, Wires([control, *lines.values()])), cast(Worker, house)

    def has_room_for(self, name: str, tenant: str) -> bool:
        """Whether another job of this tenant could start: some slots may be kept for others."""
        house = self._hosts[name]
        kept = int(house.capacity.slots >= KEEP_FROM)
        lodger = house.lodgers.get(tenant)
        is_below_its_own = lodger is None or lodger.share.free() > 0
        return is_below_its_own and house.capacity.in_hand + kept < house.capacity.slots
