"""Plays one program: first under faults, then healed, until everything has ended."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from freehold.app import Freehold
from freehold.client import Client
from freehold.clock import VirtualClock
from freehold.lab.checker.checker import check
from freehold.lab.checker.evidence import Evidence, gather
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.lab.simulation.clients import ProducerClients
from freehold.lab.simulation.invariants import InvariantChecker
from freehold.lab.simulation.limit_invariant import LimitInvariant
from freehold.lab.simulation.machine import MACHINE, Machine, MachineLoop
from freehold.lab.simulation.manager import SimulatedManagers
from freehold.lab.simulation.network import NO_NOISE, Network
from freehold.lab.simulation.operators import SimulatedOperators
from freehold.lab.simulation.scenario import (
    HORIZON_SECONDS,
    LEASE_SECONDS,
    QUEUES,
    Scenario,
    WorkerPlan,
)
from freehold.lab.simulation.tasks import Handlers
from freehold.lab.simulation.worker_machines import WorkerMachines
from freehold.model.job import Job
from freehold.model.state import FINAL, Stage, State
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup
from freehold.store.store import Store

_MICROS = 1_000_000
#: Everything that was enqueued has ended this long after the last fault.
END_SECONDS = 60.0
#: No job that can be claimed waits longer while a slot is free: a sweep, a hint, a claim.
WAIT_SECONDS = LEASE_SECONDS + 2.0
#: A worker that can do everything, for the time after the faults.
HEALING = WorkerPlan(0.0, "healer", QUEUES, 4, 1.0, knows_newer=True, grace_seconds=5.0)
_LOOK_SECONDS = 0.5


@dataclass(slots=True)
class SimulationResult:
    """What one program led to."""

    program: Scenario
    #: Found while it happened, by the witness; and afterwards, by the checker alone.
    at_once: list[Violation] = field(default_factory=list)
    afterwards: list[Violation] = field(default_factory=list)
    story: list[tuple[int, str, str]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    states: Counter[State] = field(default_factory=Counter)
    transitions: Counter[tuple[State | None, State]] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    tenants: int = 0
    jobs: int = 0
    attempts: int = 0
    statements: int = 0
    digest: str = ""

    @property
    def violations(self) -> list[Violation]:
        return self.at_once + self.afterwards


class World:
    """The machines, the network and the store of one program."""

    def __init__(
        self, program: Scenario, clock: VirtualClock, database: Database, tenant: str | None = None
    ) -> None:
        """``tenant``: whose world it is, where there are several: see `town`."""
        self._tenant = tenant
        whose = f"/{tenant}" if tenant else ""
        self._program = program
        self._clock = clock
        self._began = clock.micros
        self._database = database
        self._store = Store(database.session())
        self._digest = hashlib.blake2b(digest_size=16)
        self._played = SimulationResult(program)
        self._records: list[Record] = []
        self._ready_since: dict[int, int] = {}
        #: What is left of dead machines is cleared away afterwards, and is no part of the run.
        self._is_over = False
        room = LimitInvariant(dict(program.limits), dict(program.queue_limits))
        self._folder = contextlib.ExitStack()
        self._witness = InvariantChecker(self._store, clock, self.tell, room)
        self._network = Network(
            database, clock, f"network/{program.seed}{whose}", self._seen, self.fault
        )
        self._app = Freehold("sqlite://:memory:", schema="freehold")
        self._app.swap_client(Client(database, self._seconds))
        self._handlers = Handlers(self._app, self._handler_note)
        self._machines = WorkerMachines(self, self._network, self._app.tasks, clock)

    def _seconds(self) -> float:
        return self._clock.micros / _MICROS

    # -- what is written down ----------------------------------------------------------------

    def tell(self, who: str, text: str) -> None:
        """A line of the story."""
        if self._is_over:
            return
        at = self._clock.micros - self._began
        self._digest.update(f"{at} {who} {text}\n".encode())
        self._played.story.append((at, who, text))

    def note(self, who: str, what: str, **fields: Any) -> None:
        """A record for the checker, which is also a line of the story."""
        if self._is_over:
            return
        record = Record(self._clock.micros, who, what, **fields)
        self._records.append(record)
        if what != "step":
            self.tell(who, line_of(record))

    def fault(self, host: Machine, kind: str, to: str) -> None:
        """Something that really went wrong on the way of a batch."""
        self._played.faults[kind] += 1
        self.note(host.name, "fault", info={"kind": kind, "to": to})

    def struck(self, who: str, kind: str, until: int) -> None:
        """Something that happened to a machine as a whole."""
        self._played.faults[kind] += 1
        grave = kind != "drain"
        self.note(who, "fault", info={"kind": kind, "until": until, "grave": grave})

    def _handler_note(self, what: str, job: int, token: int, attempt: int = 0, **info: Any) -> None:
        host = MACHINE.get()
        assert host is not None
        self.note(host.name, what, job=job, token=token, attempt=attempt, info=info)

    def _seen(self, host: Machine, batch: StatementGroup, answers: list[Rows]) -> None:
        if self._is_over:
            return
        self._played.statements += len(batch.statements)
        names = "+".join(statement.name for statement in batch.statements)
        has_found = answers[0] and answers[0][0][0] is not None  # most claims have not
        # Workers say which process they are.
        if has_found and batch.statements[0].name != "workers":
            names += f" {answers}"
        self._digest.update(f"{self._clock.micros} {host.name} {names}\n".encode())
        self._witness.look(host.name, batch, answers)

    # -- the play ----------------------------------------------------------------------------

    async def run(self) -> None:
        with self._folder:
            await self._run()

    async def _run(self) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        loop.set_exception_handler(self._uncaught)
        self._begin(loop)
        for plan in self._program.workers:
            loop.call_later(plan.at, self._machines.start, plan)
        for fault in self._program.faults:
            loop.call_later(fault.at, self._machines.strike, fault)
        managers = self._manage(loop)
        await asyncio.sleep(HORIZON_SECONDS)
        self._heal()
        await self._until_all_has_ended()
        if managers is not None:
            await managers.stop()
        await self._machines.drain_all(2 * LEASE_SECONDS)
        self._gather()
        await self._machines.clear_away()
        if managers is not None:
            managers.clear_away()

    def _begin(self, loop: MachineLoop) -> None:
        """Those who use the store, and nobody else does."""
        self._set_limits()
        self._network.noise = self._program.noise
        prefix = f"{self._tenant}:" if self._tenant else ""
        clients = ProducerClients(self, self._network, self._app, self._handlers, prefix)
        self._operators = SimulatedOperators(self, self._network, self._witness, loop)
        self._calling = clients.start(loop, self._program.calls)
        for operation in self._program.operations:
            loop.call_later(operation.at, self._operators.begin, operation)

    def _set_limits(self) -> None:
        for key, limit in self._program.limits:
            self._store.set_key_limit(key, limit)
        for queue, limit in self._program.queue_limits:
            self._store.set_queue_limit(queue, limit)

    def _manage(self, loop: MachineLoop) -> SimulatedManagers | None:
        plan = self._program.manager
        if plan is None:
            return None
        folder = Path(self._folder.enter_context(tempfile.TemporaryDirectory()))
        managers = SimulatedManagers(
            plan, folder, self, self._network, self._machines, self._broken
        )
        managers.start()
        for at, seconds in plan.crashes:
            loop.call_later(at, managers.crash)
            loop.call_later(at + seconds, managers.start_again)
        return managers

    def _broken(self, text: str) -> None:
        self._played.at_once.append(Violation("manager", 0, text, self._clock.micros))

    def _heal(self) -> None:
        """No fault from here on; and somebody is there who can do everything."""
        self._calm()
        self._machines.heal()
        self._machines.start(HEALING)
        self.note("world", "healed")

    def _calm(self) -> None:
        self._network.noise = NO_NOISE
        self._network.interrupt = None
        self._handlers.is_healed = True

    async def _until_all_has_ended(self) -> None:
        deadline = self._clock.micros + END_SECONDS * _MICROS
        while self._clock.micros < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            # What arrives when all have gone is done by nobody.
            is_more_to_come = any("enqueue" in t.get_name() for t in self._network.arriving)
            jobs = await self._operators.tidy_up()
            self._note_waiting(jobs)
            is_over = all(job.state in FINAL and job.stage is None for job in jobs)
            is_quiet = self._operators.are_done and all(task.done() for task in self._calling)
            if is_over and is_quiet and not is_more_to_come:
                return

    def _note_waiting(self, jobs: list[Job]) -> None:
        """Who can be claimed while a slot is free, and since when: for the rule of liveness."""
        ready = (
            [
                job.id
                for job in jobs
                if job.stage in (Stage.READY, Stage.HEAD) and not self._witness.is_held_up(job.id)
            ]
            if self._has_room()
            else []
        )
        since = {job_id: self._ready_since.get(job_id, self._clock.micros) for job_id in ready}
        self._ready_since = since
        for job_id, began in since.items():
            seconds = (self._clock.micros - began) / _MICROS
            if seconds > WAIT_SECONDS + len(jobs) * self._seconds_a_start():
                self.note("world", "waits", job=job_id, info={"seconds": seconds})

    def _seconds_a_start(self) -> float:
        """A queue that may start so many in a while makes all others wait, free slots or not."""
        rates = [limit.rate for _, limit in self._program.queue_limits if limit.rate is not None]
        return max((rate.seconds / rate.starts for rate in rates), default=0.0)

    def _has_room(self) -> bool:
        return self._machines.has_room(HEALING.name)

    def _gather(self) -> None:
        self._evidence = gather(
            self._store,
            sorted(self._witness.jobs),
            self._records,
            dict(self._program.limits),
            dict(self._program.queue_limits),
            LEASE_SECONDS,
            self._tenant,
        )
        self._is_over = True

    def _uncaught(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = f"{context.get('message')}: {error!r}"
        self._played.at_once.append(Violation("crash", 0, text, self._clock.micros))

    # -- the judgement -----------------------------------------------------------------------

    def judged(self) -> SimulationResult:
        played, evidence = self._played, self._evidence
        played.at_once += self._witness.violations
        played.afterwards += check(evidence)
        played.transitions = self._witness.transitions
        for (_source, goal), count in self._witness.transitions.items():
            played.states[goal] += count
        for events in evidence.events.values():
            played.events.update(event.kind.value for event in events)
        played.jobs = len(evidence.jobs)
        played.attempts = sum(record.what == "started" for record in self._records)
        self._digest.update(_final(evidence).encode())
        played.digest = self._digest.hexdigest()
        return played


def _final(evidence: Evidence) -> str:
    return "\n".join(f"{job_id} {job}" for job_id, job in sorted(evidence.jobs.items()))


def line_of(record: Record) -> str:
    parts = [record.what]
    if record.call:
        parts.append(record.call)
    if record.job:
        parts.append(f"job {record.job}")
    if record.token:
        parts.append(f"token {record.token}")
    if record.attempt:
        parts.append(f"attempt {record.attempt}")
    parts += [f"{name}={value}" for name, value in record.info.items() if value is not None]
    return " ".join(parts)
