"""Machines that serve all tenants: each runs the real host, with a link to every store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from freehold.clock import VirtualClock
from freehold.lab.simulation.machine import Machine
from freehold.lab.simulation.network import Link, Network
from freehold.lab.simulation.scenario import WorkerPlan
from freehold.lab.simulation.shards import LinkShard
from freehold.lab.simulation.tenant_plans import TenantPlan
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
from freehold.tenants.slot_use import RESERVE_FROM_SLOTS
from freehold.testing.host import virtual_host
from freehold.worker.worker import Worker


class TenantLinks:
    """All links of a machine; they break together."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links

    async def machine_died(self) -> None:
        for link in self._links:
            await link.machine_died()

    async def abort_transactions(self) -> None:
        for link in self._links:
            await link.abort_transactions()

    def notify_listener(self, notification: str | None) -> None:
        for link in self._links:
            link.notify_listener(notification)


class NotifyingTenantSource(ServedTenants):
    """The real directory of tenants; degradations are also reported to the world."""

    def __init__(
        self,
        control: Database,
        shards: Mapping[str, LinkShard],
        on_degraded: Callable[[str, str], None],
    ) -> None:
        super().__init__(control, cast(Shards, shards), None)
        self._on_degraded = on_degraded

    async def degrade(self, tenant: str, why: str) -> None:
        self._on_degraded(tenant, why)
        await super().degrade(tenant, why)


class TenantMachines(WorkerMachines):
    """All worker machines of a world with tenants."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        control: Network,
        networks: Mapping[str, Network],
        tenants: Sequence[TenantPlan],
        tasks: Registry,
        clock: VirtualClock,
        on_degraded: Callable[[str, str], None],
    ) -> None:
        super().__init__(recorder, control, tasks, clock)
        self._networks = networks
        self._tenants = tenants
        self._on_degraded = on_degraded
        self._tenant_hosts: dict[str, TenantHost] = {}

    def _build(
        self, plan: WorkerPlan, host: Machine, _slot: tuple[Path, int] | None
    ) -> tuple[Link, Worker]:
        control = self._network.link(host)
        links = {
            tenant: network.link(host, without_notifications=plan.without_notifications)
            for tenant, network in self._networks.items()
        }
        shards = {
            name: LinkShard(name, {t.name: links[t.name] for t in self._tenants if t.shard == name})
            for name in sorted({tenant.shard for tenant in self._tenants})
        }
        numbers = itertools.count(1)
        tenant_host = virtual_host(
            NotifyingTenantSource(cast(Database, control), shards, self._on_degraded),
            self._known_tasks(plan),
            settings_of(plan),
            chance=chance_of(plan),
            name_worker=lambda: f"{plan.name}/{next(numbers)}",
        )
        self._tenant_hosts[plan.name] = tenant_host
        # The faults need only drain() and hurry(), which a host has like a worker.
        return cast(Link, TenantLinks([control, *links.values()])), cast(Worker, tenant_host)

    def has_free_slot_for(self, name: str, tenant: str) -> bool:
        """Whether another job of this tenant could start. Hosts with many slots reserve one for
        the other tenants."""
        tenant_host = self._tenant_hosts[name]
        slots = tenant_host.slots
        reserved = int(slots.count >= RESERVE_FROM_SLOTS)
        tenant_worker = tenant_host.workers.get(tenant)
        is_below_tenant_limit = tenant_worker is None or tenant_worker.slots.free() > 0
        return is_below_tenant_limit and slots.use.held + reserved < slots.count
