"""Plays a program with tenants: a world for each, and machines that serve them all.

    control (the directory) <--lines-- houses (the real host) --lines--> wards: a store for each
                                                                         tenant, and who uses it

Each ward is judged by itself, as a world without tenants is. What handlers write down goes to
the ward in whose name they run. Under the faults one store may go away and stay away: the others
end without it, and then it ends too.
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
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import NO_NOISE, Network
from freehold.lab.simulation.scenario import HORIZON_SECONDS, LEASE_SECONDS, Scenario, TenantFault
from freehold.lab.simulation.shards import LinkShard
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.tenant_machines import TenantMachines
from freehold.lab.simulation.world import HEALING, SimulationResult, World, line_of
from freehold.model.job import Job
from freehold.model.limit import ALL_QUEUES
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup
from freehold.tenants.shards import Shards
from freehold.tenants.tenants import Tenants
from freehold.worker.execution.context import Context

_MICROS = 1_000_000
#: Longer than everything else takes.
_STAYS_AWAY_SECONDS = 600.0
_ROUNDS = 3
_SOON_SECONDS = 1.0


class TenantStore(World):
    """One tenant's store, and those who use it."""

    def __init__(
        self,
        town: TenantWorld,
        program: Scenario,
        clock: VirtualClock,
        database: Database,
        tenant: str,
    ) -> None:
        super().__init__(program, clock, database, tenant)
        self._town = town
        self.name = tenant
        self.network = self._network
        self.handlers = self._handlers
        # One story of all.
        self._digest = town.digest
        self._played.story = town.played.story
        #: Whether its store went away for longer than all else takes.
        self.stays_away = False

    def tell(self, who: str, text: str) -> None:
        super().tell(who, f"{self.name}: {text}")

    def hear(self, record: Record) -> None:
        """What happens to all."""
        self._records.append(record)

    begin = World._begin
    calm = World._calm
    until_all_has_ended = World._until_all_has_ended
    gather = World._gather

    def went_away(self, kind: str, seconds: float) -> None:
        until = self._clock.micros + round(seconds * _MICROS)
        self.struck(STORE, kind, until)
        self.network.go_away(until, hangs=kind == "store_hangs")

    def paused(self, verb: str, call: str) -> None:
        info = {"verb": verb, "queue": ALL_QUEUES}
        for what in ("asked", "told"):
            self.note("operator", what, call=call, info=info)

    def broke(self, text: str) -> None:
        self._played.at_once.append(Violation("crash", 0, text, self._clock.micros))

    def _note_waiting(self, jobs: list[Job]) -> None:
        """One that was away is looked at again ever more rarely."""
        if not self.stays_away:
            super()._note_waiting(jobs)

    def _has_room(self) -> bool:
        return self._town.houses.has_room_for(HEALING.name, self.name)


class TenantWorld:
    """The machines, the directory and the wards of one program."""

    def __init__(
        self, program: Scenario, clock: VirtualClock, control: Database, stores: Sequence[Database]
    ) -> None:
        self.digest = hashlib.blake2b(digest_size=16)
        self.played = SimulationResult(program, tenants=len(program.tenants))
        self._program = program
        self._clock = clock
        self._began = clock.micros
        self._is_over = False
        self._wards = {
            plan.name: TenantStore(self, _part(program, number), clock, store, plan.name)
            for number, (plan, store) in enumerate(zip(program.tenants, stores, strict=True))
        }
        self._control = Network(
            control, clock, f"network/{program.seed}/control", self._seen, self._fault
        )
        self._app = Freehold("sqlite://:memory:", schema="freehold")
        Handlers(self._app, self.note, self._whose)
        networks = {name: ward.network for name, ward in self._wards.items()}
        self.houses = TenantMachines(
            self, self._control, networks, program.tenants, self._app.tasks, clock, self._degraded
        )
        self._tenancy = Tenants(control, self._people_s_places())
        for plan in program.tenants:
            self._tenancy.create(plan.name, plan.place, plan.weight, plan.max_slots)

    def _people_s_places(self) -> Shards:
        """Whoever pauses a tenant sits beside the stores."""
        host = Machine("operator")
        lines = {name: ward.network.line(host) for name, ward in self._wards.items()}
        place = LinkShard("all", lines)
        return cast(Shards, {plan.place: place for plan in self._program.tenants})

    def _whose(self, ctx: Context) -> Handlers:
        assert ctx.tenant is not None
        return self._wards[ctx.tenant].handlers

    # -- what is written down ----------------------------------------------------------------

    def tell(self, who: str, text: str) -> None:
        if self._is_over:
            return
        at = self._clock.micros - self._began
        self.digest.update(f"{at} {who} {text}\n".encode())
        self.played.story.append((at, who, text))

    def note(self, who: str, what: str, **fields: Any) -> None:
        """Of a machine: it concerns every tenant."""
        if self._is_over:
            return
        record = Record(self._clock.micros, who, what, **fields)
        for ward in self._wards.values():
            ward.hear(record)
        self.tell(who, line_of(record))

    def struck(self, who: str, kind: str, until: int) -> None:
        self.played.faults[kind] += 1
        self.note(who, "fault", info={"kind": kind, "until": until, "grave": kind != "drain"})

    def _fault(self, host: Machine, kind: str, to: str) -> None:
        """On the way to the directory, which holds no leases."""
        self.played.faults[kind] += 1
        self.tell(host.name, f"directory: fault kind={kind} to={to}")

    def _seen(self, host: Machine, batch: StatementGroup, _answers: list[Rows]) -> None:
        self.played.statements += len(batch.statements)
        names = "+".join(statement.name for statement in batch.statements)
        self.digest.update(f"{self._clock.micros} {host.name} {names}\n".encode())

    def _degraded(self, tenant: str, why: str) -> None:
        """A host leaves a tenant alone. That must be its store's fault."""
        self.tell("directory", f"{tenant}: degraded: {why}")
        if not why.startswith("simulated:") and not self._is_over:
            self._wards[tenant].broke(f"was left alone by its host: {why}")

    # -- the play ----------------------------------------------------------------------------

    async def run(self) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        loop.set_exception_handler(self._uncaught)
        for ward in self._wards.values():
            ward.begin(loop)
        self._control.noise = self._program.noise
        for plan in self._program.workers:
            loop.call_later(plan.at, self.houses.start, plan)
        for fault in self._program.faults:
            loop.call_later(fault.at, self.houses.strike, fault)
        for number, mishap in enumerate(self._program.mishaps):
            loop.call_later(mishap.at, self._befall, mishap, number)
        await asyncio.sleep(HORIZON_SECONDS)
        self._heal()
        wards = list(self._wards.values())
        await self._all_end([ward for ward in wards if not ward.stays_away])
        self._bring_back()
        await self._all_end(wards)
        await self.houses.drain_all(2 * LEASE_SECONDS)
        for ward in wards:
            ward.gather()
        self._is_over = True
        await self.houses.clear_away()

    def _befall(self, mishap: TenantFault, number: int) -> None:
        ward, loop = self._wards[mishap.tenant], asyncio.get_running_loop()
        if mishap.kind == "tenant_paused":
            self.played.faults[mishap.kind] += 1
            self._tenancy.pause(ward.name, "operator")
            ward.paused("pause_queue", f"pause{number}")
            loop.call_later(mishap.seconds, self._resume, ward, f"resume{number}")
            return
        if ward.network.is_away:
            return
        ward.stays_away = mishap.kind == "store_stays_away"
        seconds = _STAYS_AWAY_SECONDS if ward.stays_away else mishap.seconds
        ward.went_away(mishap.kind, seconds)
        if not ward.stays_away:
            loop.call_later(seconds + 0.001, ward.network.come_back)

    def _resume(self, ward: TenantStore, call: str) -> None:
        if self._tenancy.resume(ward.name):
            ward.paused("resume_queue", call)

    def _heal(self) -> None:
        """No fault from here on, but for a store that stays away; and somebody is there who can
        do everything."""
        self._control.noise = NO_NOISE
        for ward in self._wards.values():
            ward.calm()
            self._resume(ward, "healing")
            if not ward.stays_away:
                ward.network.come_back()
        self.houses.heal()
        self.houses.start(HEALING)
        self.note("world", "healed")

    def _bring_back(self) -> None:
        for ward in self._wards.values():
            if ward.network.is_away:
                ward.tell(STORE, "is back")
                ward.network.come_back()

    async def _all_end(self, wards: list[TenantStore]) -> None:
        """Until all have ended at the same time: late words may wake one that had ended."""
        for _ in range(_ROUNDS):
            began = self._clock.micros
            await asyncio.gather(*(ward.until_all_has_ended() for ward in wards))
            if self._clock.micros < began + _SOON_SECONDS * _MICROS:
                return

    def _uncaught(self, _loop: Any, context: dict[str, Any]) -> None:
        text = f"{context.get('message')}: {context.get('exception')!r}"
        self.played.at_once.append(Violation("crash", 0, text, self._clock.micros))

    # -- the judgement -----------------------------------------------------------------------

    def judged(self) -> SimulationResult:
        played = self.played
        for ward in self._wards.values():
            part = ward.judged()
            played.at_once += [_of(ward, violation) for violation in part.at_once]
            played.afterwards += [_of(ward, violation) for violation in part.afterwards]
            for sum_, its in (
                (played.faults, part.faults),
                (played.states, part.states),
                (played.transitions, part.transitions),
                (played.events, part.events),
            ):
                cast(Any, sum_).update(its)
            played.jobs += part.jobs
            played.attempts += part.attempts
            played.statements += part.statements
        played.digest = self.digest.hexdigest()
        return played


def _part(program: Scenario, number: int) -> Scenario:
    """What is done to one of the tenants."""
    count = len(program.tenants)
    return replace(
        program,
        calls=tuple(each for each in program.calls if each.number % count == number),
        operations=tuple(each for each in program.operations if each.number % count == number),
    )


def _of(ward: TenantStore, violation: Violation) -> Violation:
    return msgspec.structs.replace(violation, text=f"{violation.text} (tenant {ward.name})")
