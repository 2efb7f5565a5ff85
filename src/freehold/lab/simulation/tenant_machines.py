"""Machines that serve all tenants: each runs the real host, with a line to every store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from freehold.clock import VirtualClock
from freehold.lab.simulation.machine import Machine as Computer
from freehold.lab.simulation.network import Link, Network
from freehold.lab.simulation.scenario import TenantPlan, WorkerPlan
from freehold.lab.simulation.shards import LinkShard
from freehold.lab.simulation.worker_machines import (
    HistoryRecorder,
    WorkerMachines,
    chance_of,
    settings_of,
)
from freehold.store.database import Database
from freehold.tasks import Registry
from freehold.tenants.host import TenantHost
from freehold.tenants.served_tenants import ServedTenants
from freehold.tenants.shards import Shards
from freehold.tenants.shared_slots import KEEP_FROM
from freehold.testing.host import virtual_host
from freehold.worker.worker import Worker


class TenantLinks:
    """All lines of a machine: they break together."""

    def __init__(self, lines: Sequence[Link]) -> None:
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


class NotifyingTenantSource(ServedTenants):
    """The real directory; what a host says of tenants is also told to the world."""

    def __init__(
        self,
        control: Database,
        places: Mapping[str, LinkShard],
        degraded: Callable[[str, str], None],
    ) -> None:
        super().__init__(control, cast(Shards, places), None)
        self._degraded = degraded

    async def degrade(self, tenant: str, why: str) -> None:
        self._degraded(tenant, why)
        await super().degrade(tenant, why)


class TenantMachines(WorkerMachines):
    """All machines of a town."""

    def __init__(
        self,
        scribe: HistoryRecorder,
        control: Network,
        networks: Mapping[str, Network],
        tenants: Sequence[TenantPlan],
        tasks: Registry,
        clock: VirtualClock,
        degraded: Callable[[str, str], None],
    ) -> None:
        super().__init__(scribe, control, tasks, clock)
        self._networks = networks
        self._tenants = tenants
        self._degraded = degraded
        self._hosts: dict[str, TenantHost] = {}

    def _build(
        self, plan: WorkerPlan, host: Computer, _seat: tuple[Path, int] | None
    ) -> tuple[Link, Worker]:
        control = self._network.line(host)
        lines = {
            tenant: network.line(host, is_deaf=plan.is_deaf)
            for tenant, network in self._networks.items()
        }
        places = {
            name: LinkShard(name, {t.name: lines[t.name] for t in self._tenants if t.place == name})
            for name in sorted({tenant.place for tenant in self._tenants})
        }
        numbers = itertools.count(1)
        house = virtual_host(
            NotifyingTenantSource(cast(Database, control), places, self._degraded),
            self._known_to(plan),
            settings_of(plan),
            chance=chance_of(plan),
            name_worker=lambda: f"{plan.name}/{next(numbers)}",
        )
        self._hosts[plan.name] = house
        # Whoever breaks machines treats it as any other: it drains and hurries as a worker does.
        return cast(Link, TenantLinks([control, *lines.values()])), cast(Worker, house)

    def has_room_for(self, name: str, tenant: str) -> bool:
        """Whether another job of this tenant could start: some slots may be kept for others."""
        house = self._hosts[name]
        kept = int(house.capacity.slots >= KEEP_FROM)
        lodger = house.lodgers.get(tenant)
        is_below_its_own = lodger is None or lodger.share.free() > 0
        return is_below_its_own and house.capacity.in_hand + kept < house.capacity.slots
