"""Runs a scenario with tenants: a store for each tenant, and machines that serve them all.

    control (the directory) <--links-- machines (the real host) --links--> one store per tenant

Each store is checked by itself, like a world without tenants. The records of a handler go to the
tenant of its job. One store may go down and stay down after the other faults: the other tenants
must end without it, and then it comes up and must end too.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from freehold.app import Freehold
from freehold.clock import VirtualClock
from freehold.lab.checker.faults import STORE
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.lab.simulation.link_noise import NO_NOISE
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import HORIZON_SECONDS, LEASE_SECONDS, Scenario
from freehold.lab.simulation.shards import LinkShard
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.tenant_machines import TenantMachines
from freehold.lab.simulation.tenant_plans import TenantFault
from freehold.lab.simulation.world import HEALTHY_WORKER, SimulationResult, World, trace_text
from freehold.model.job import Job
from freehold.model.limit import ALL_QUEUES
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup
from freehold.tenants.shards import Shards
from freehold.tenants.tenants import Tenants
from freehold.worker.execution.context import Context

_MICROS = 1_000_000
#: Longer than everything else takes.
_STAYS_DOWN_SECONDS = 600.0
_ROUNDS = 3
_SOON_SECONDS = 1.0


class TenantStore(World):
    """One tenant's store, with its clients and operators."""

    def __init__(
        self,
        tenant_world: TenantWorld,
        scenario: Scenario,
        clock: VirtualClock,
        database: Database,
        tenant: str,
    ) -> None:
        super().__init__(scenario, clock, database, tenant)
        self._tenant_world = tenant_world
        self.name = tenant
        self.network = self._network
        self.handlers = self._handlers
        # All stores share one trace.
        self._digest = tenant_world.digest
        self._result.trace = tenant_world.result.trace
        #: Whether it is down until all other tenants have ended.
        self.stays_down = False

    def trace(self, actor: str, text: str) -> None:
        super().trace(actor, f"{self.name}: {text}")

    def add_record(self, record: Record) -> None:
        """Adds a record that concerns all tenants."""
        self._records.append(record)

    start_users = World._start_users
    stop_faults = World._stop_faults
    until_all_have_ended = World._until_all_have_ended
    gather_evidence = World._gather_evidence

    def go_down(self, kind: str, seconds: float) -> None:
        until = self._clock.micros + round(seconds * _MICROS)
        self.record_machine_fault(STORE, kind, until)
        self.network.go_down(until, hangs=kind == "store_hangs")

    def record_pause(self, verb: str, call: str) -> None:
        info = {"verb": verb, "queue": ALL_QUEUES}
        for kind in ("requested", "responded"):
            self.record("operator", kind, call=call, info=info)

    def add_crash(self, text: str) -> None:
        self._result.found_during.append(Violation("crash", 0, text, self._clock.micros))

    def _record_waiting(self, jobs: list[Job]) -> None:
        """A host checks a tenant that stayed down ever more rarely, so it may wait."""
        if not self.stays_down:
            super()._record_waiting(jobs)

    def _stands_still(self, _jobs: list[Job], _began: int) -> bool:
        """Never for certain: a host checks a tenant after up to a minute."""
        return False

    def _has_free_slot(self) -> bool:
        return self._tenant_world.machines.has_free_slot_for(HEALTHY_WORKER.name, self.name)


class TenantWorld:
    """The machines, the directory and the stores of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        clock: VirtualClock,
        control: Database,
        databases: Sequence[Database],
    ) -> None:
        self.digest = hashlib.blake2b(digest_size=16)
        self.result = SimulationResult(scenario, tenants=len(scenario.tenants))
        self._scenario = scenario
        self._clock = clock
        self._began = clock.micros
        self._is_over = False
        self._stores = {
            plan.name: TenantStore(
                self, _part_of_tenant(scenario, number), clock, database, plan.name
            )
            for number, (plan, database) in enumerate(zip(scenario.tenants, databases, strict=True))
        }
        self._control = Network(
            control,
            clock,
            f"network/{scenario.seed}/control",
            self._on_executed,
            self._record_directory_fault,
        )
        self._app = Freehold("sqlite://:memory:", schema="freehold")
        Handlers(self._app, self.record, self._handlers_of)
        networks = {name: store.network for name, store in self._stores.items()}
        self.machines = TenantMachines(
            self,
            self._control,
            networks,
            scenario.tenants,
            self._app.tasks,
            clock,
            self._on_degraded,
        )
        self._tenants = Tenants(control, self._operator_shards())
        for plan in scenario.tenants:
            self._tenants.create(plan.name, plan.shard, plan.weight, plan.max_slots)

    def _operator_shards(self) -> Shards:
        """The operator that pauses tenants has its own links to the stores."""
        machine = Machine("operator")
        links = {name: store.network.link(machine) for name, store in self._stores.items()}
        shard = LinkShard("all", links)
        return cast(Shards, {plan.shard: shard for plan in self._scenario.tenants})

    def _handlers_of(self, ctx: Context) -> Handlers:
        assert ctx.tenant is not None
        return self._stores[ctx.tenant].handlers

    # -- trace and records -------------------------------------------------------------------

    def trace(self, actor: str, text: str) -> None:
        if self._is_over:
            return
        at = self._clock.micros - self._began
        self.digest.update(f"{at} {actor} {text}\n".encode())
        self.result.trace.append((at, actor, text))

    def record(self, actor: str, kind: str, **fields: Any) -> None:
        """Adds a record about a machine, which concerns every tenant."""
        if self._is_over:
            return
        record = Record(self._clock.micros, actor, kind, **fields)
        for store in self._stores.values():
            store.add_record(record)
        self.trace(actor, trace_text(record))

    def record_machine_fault(self, actor: str, kind: str, until: int) -> None:
        self.result.faults[kind] += 1
        self.record(actor, "fault", info={"kind": kind, "until": until, "grave": kind != "drain"})

    def _record_directory_fault(self, machine: Machine, kind: str, to: str) -> None:
        """A fault on a link to the directory, which holds no leases."""
        self.result.faults[kind] += 1
        self.trace(machine.name, f"directory: fault kind={kind} to={to}")

    def _on_executed(self, machine: Machine, group: StatementGroup, _results: list[Rows]) -> None:
        self.result.statements += len(group.statements)
        names = "+".join(statement.name for statement in group.statements)
        self.digest.update(f"{self._clock.micros} {machine.name} {names}\n".encode())

    def _on_degraded(self, tenant: str, why: str) -> None:
        """A host stopped serving a tenant, which is allowed only for an error of its store."""
        self.trace("directory", f"{tenant}: degraded: {why}")
        if not why.startswith("simulated:") and not self._is_over:
            self._stores[tenant].add_crash(f"its host stopped serving it: {why}")

    # -- the run -----------------------------------------------------------------------------

    async def run(self) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        loop.set_exception_handler(self._uncaught)
        for store in self._stores.values():
            store.start_users(loop)
        self._control.noise = self._scenario.noise
        for plan in self._scenario.workers:
            loop.call_later(plan.at, self.machines.start, plan)
        for fault in self._scenario.faults:
            loop.call_later(fault.at, self.machines.inject, fault)
        for number, tenant_fault in enumerate(self._scenario.tenant_faults):
            loop.call_later(tenant_fault.at, self._inject_tenant_fault, tenant_fault, number)
        await asyncio.sleep(HORIZON_SECONDS)
        self._heal()
        stores = list(self._stores.values())
        await self._until_all_end_together([store for store in stores if not store.stays_down])
        self._bring_up()
        await self._until_all_end_together(stores)
        await self.machines.drain_all(2 * LEASE_SECONDS)
        for store in stores:
            store.gather_evidence()
        self._is_over = True
        await self.machines.clean_up()

    def _inject_tenant_fault(self, tenant_fault: TenantFault, number: int) -> None:
        store, loop = self._stores[tenant_fault.tenant], asyncio.get_running_loop()
        if tenant_fault.kind == "tenant_paused":
            self.result.faults[tenant_fault.kind] += 1
            self._tenants.pause(store.name, "operator")
            store.record_pause("pause_queue", f"pause{number}")
            loop.call_later(tenant_fault.seconds, self._resume, store, f"resume{number}")
            return
        if store.network.is_down:
            return
        store.stays_down = tenant_fault.kind == "store_stays_down"
        seconds = _STAYS_DOWN_SECONDS if store.stays_down else tenant_fault.seconds
        store.go_down(tenant_fault.kind, seconds)
        if not store.stays_down:
            loop.call_later(seconds + 0.001, store.network.come_up)

    def _resume(self, store: TenantStore, call: str) -> None:
        if self._tenants.resume(store.name):
            store.record_pause("resume_queue", call)

    def _heal(self) -> None:
        """Stops all faults except a store that stays down, and starts a worker that can run every
        job."""
        self._control.noise = NO_NOISE
        for store in self._stores.values():
            store.stop_faults()
            self._resume(store, "healing")
            if not store.stays_down:
                store.network.come_up()
        self.machines.heal()
        self.machines.start(HEALTHY_WORKER)
        self.record("world", "healed")

    def _bring_up(self) -> None:
        for store in self._stores.values():
            if store.network.is_down:
                store.trace(STORE, "is up")
                store.network.come_up()

    async def _until_all_end_together(self, stores: list[TenantStore]) -> None:
        """A late write may create work for a tenant that had ended, so all are checked again."""
        for _ in range(_ROUNDS):
            began = self._clock.micros
            await asyncio.gather(*(store.until_all_have_ended() for store in stores))
            if self._clock.micros < began + _SOON_SECONDS * _MICROS:
                return

    def _uncaught(self, _loop: Any, context: dict[str, Any]) -> None:
        text = f"{context.get('message')}: {context.get('exception')!r}"
        self.result.found_during.append(Violation("crash", 0, text, self._clock.micros))

    # -- the result --------------------------------------------------------------------------

    def evaluate(self) -> SimulationResult:
        result = self.result
        for store in self._stores.values():
            part = store.evaluate()
            result.found_during += [
                _with_tenant(store, violation) for violation in part.found_during
            ]
            result.found_after += [_with_tenant(store, violation) for violation in part.found_after]
            for total, part_counts in (
                (result.faults, part.faults),
                (result.states, part.states),
                (result.transitions, part.transitions),
                (result.events, part.events),
            ):
                cast(Any, total).update(part_counts)
            result.jobs += part.jobs
            result.attempts += part.attempts
            result.statements += part.statements
        result.digest = self.digest.hexdigest()
        return result


def _part_of_tenant(scenario: Scenario, number: int) -> Scenario:
    """The calls and operations of one tenant."""
    count = len(scenario.tenants)
    return replace(
        scenario,
        calls=tuple(each for each in scenario.calls if each.number % count == number),
        operations=tuple(each for each in scenario.operations if each.number % count == number),
    )


def _with_tenant(store: TenantStore, violation: Violation) -> Violation:
    return msgspec.structs.replace(violation, text=f"{violation.text} (tenant {store.name})")
