"""Runs one scenario: first with faults, then without, until every job has ended."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
import traceback
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
from freehold.lab.simulation.flow_clients import FlowClients
from freehold.lab.simulation.handler_parts import create_ledger, read_ledger
from freehold.lab.simulation.invariants import InvariantChecker
from freehold.lab.simulation.limit_invariant import LimitInvariant
from freehold.lab.simulation.link_noise import NO_NOISE
from freehold.lab.simulation.machine import MACHINE, Machine, MachineLoop
from freehold.lab.simulation.manager import SimulatedManagers
from freehold.lab.simulation.network import Network, statement_names
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
from freehold.model.timestamps import time_of
from freehold.store.database import Database
from freehold.store.statements import Rows, StatementGroup
from freehold.store.store import Store

_MICROS = 1_000_000
#: Everything that was enqueued has ended this long after the last fault.
END_SECONDS = 60.0
#: No claimable job waits longer while a slot is free: time for a sweep, a notification, a claim.
WAIT_SECONDS = LEASE_SECONDS + 2.0
#: A worker that serves every queue and knows every task, for the time after the faults.
HEALTHY_WORKER = WorkerPlan(0.0, "healer", QUEUES, 4, 1.0, knows_newer=True, grace_seconds=5.0)
_CHECK_SECONDS = 0.5
#: A run stands still if no job has changed for this long: polls, sweeps and tries after an error
#: are at most 10 s apart.
STILL_SECONDS = 15.0


@dataclass(slots=True)
class SimulationResult:
    """The outcome of one scenario."""

    scenario: Scenario
    #: Found during the run by the invariants, and after it by the history checker alone.
    found_during: list[Violation] = field(default_factory=list)
    found_after: list[Violation] = field(default_factory=list)
    trace: list[tuple[int, str, str]] = field(default_factory=list)
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
        return self.found_during + self.found_after


class World:
    """The machines, the network and the store of one scenario."""

    def __init__(
        self, scenario: Scenario, clock: VirtualClock, database: Database, tenant: str | None = None
    ) -> None:
        """``tenant``: the tenant of this store, in a scenario with tenants (`tenant_world`)."""
        self._tenant = tenant
        suffix = f"/{tenant}" if tenant else ""
        self._scenario = scenario
        self._clock = clock
        self._began = clock.micros
        self._database = database
        self._store = Store(database.session())
        self._digest = hashlib.blake2b(digest_size=16)
        self._result = SimulationResult(scenario)
        self._records: list[Record] = []
        self._ready_since: dict[int, int] = {}
        #: Set before the tasks of dead machines are cleaned up, which is not part of the run.
        self._is_over = False
        limits = LimitInvariant(dict(scenario.limits), dict(scenario.queue_limits))
        self._folder = contextlib.ExitStack()
        self._invariants = InvariantChecker(
            self._store, clock, self.trace, limits, self._record_recovery
        )
        self._network = Network(
            database,
            clock,
            f"network/{scenario.seed}{suffix}",
            self._on_executed,
            self.record_link_fault,
        )
        self._app = Freehold("sqlite://:memory:", schema="freehold")
        self._app._swap_client(Client(database, self._seconds))
        if scenario.signals:
            create_ledger(database)
        self._handlers = Handlers(self._app, self._handler_record)
        self._machines = WorkerMachines(self, self._network, self._app.tasks, clock)

    def _seconds(self) -> float:
        return self._clock.micros / _MICROS

    # -- trace and records -------------------------------------------------------------------

    def trace(self, actor: str, text: str) -> None:
        """Adds a line to the trace."""
        if self._is_over:
            return
        at = self._clock.micros - self._began
        self._digest.update(f"{at} {actor} {text}\n".encode())
        self._result.trace.append((at, actor, text))

    def record(self, actor: str, kind: str, **fields: Any) -> None:
        """Adds a record for the checker, and a line to the trace."""
        if self._is_over:
            return
        record = Record(self._clock.micros, actor, kind, **fields)
        self._records.append(record)
        if kind != "step":
            self.trace(actor, trace_text(record))

    def record_link_fault(self, machine: Machine, kind: str, to: str) -> None:
        """A fault that a link applied to a group."""
        self._result.faults[kind] += 1
        self.record(machine.name, "fault", info={"kind": kind, "to": to})

    def record_machine_fault(self, actor: str, kind: str, until: int) -> None:
        """A fault of a whole machine."""
        self._result.faults[kind] += 1
        grave = kind != "drain"
        self.record(actor, "fault", info={"kind": kind, "until": until, "grave": grave})

    def _handler_record(
        self, kind: str, job: int, token: int, attempt: int = 0, **info: Any
    ) -> None:
        machine = MACHINE.get()
        assert machine is not None
        self.record(machine.name, kind, job=job, token=token, attempt=attempt, info=info)

    def _record_recovery(self, actor: str, job_id: int, token: int) -> None:
        self.record(actor, "recovered", job=job_id, token=token)

    def _on_executed(self, machine: Machine, group: StatementGroup, results: list[Rows]) -> None:
        if self._is_over:
            return
        self._result.statements += len(group.statements)
        names = "+".join(statement.name for statement in group.statements)
        has_found = results[0] and results[0][0][0] is not None  # most claims have not
        # Rows of `workers` contain process ids, which differ from run to run.
        if has_found and group.statements[0].name != "workers":
            names += f" {results}"
        self._digest.update(f"{self._clock.micros} {machine.name} {names}\n".encode())
        try:
            self._invariants.check_group(machine.name, group, results)
        except Exception as error:  # the handler or client that sent the group must not get it
            self._on_invariant_error(machine.name, group, error)

    def _on_invariant_error(self, actor: str, group: StatementGroup, error: Exception) -> None:
        """An error of the checks themselves proves nothing about the store, but hides the rest."""
        at = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(at.filename).name}:{at.lineno}"
        text = f"after {statement_names(group)} of {actor} a check raised {error!r} at {where}"
        self._result.found_during.append(Violation("check", 0, text, self._clock.micros))

    # -- the run -----------------------------------------------------------------------------

    async def run(self) -> None:
        with self._folder:
            await self._run()

    async def _run(self) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        loop.set_exception_handler(self._uncaught)
        self._start_users(loop)
        for plan in self._scenario.workers:
            loop.call_later(plan.at, self._machines.start, plan)
        for fault in self._scenario.faults:
            loop.call_later(fault.at, self._machines.inject, fault)
        managers = self._start_managers(loop)
        await asyncio.sleep(HORIZON_SECONDS)
        self._heal()
        await self._until_all_have_ended()
        if managers is not None:
            await managers.stop()
        await self._machines.drain_all(2 * LEASE_SECONDS)
        self._gather_evidence()
        await self._machines.clean_up()
        if managers is not None:
            managers.clean_up()

    def _start_users(self, loop: MachineLoop) -> None:
        """Starts the clients and operators of this store, and sets its limits."""
        self._set_limits()
        self._network.noise = self._scenario.noise
        prefix = f"{self._tenant}:" if self._tenant else ""
        clients = ProducerClients(self, self._network, self._app, self._handlers, prefix)
        self._operators = SimulatedOperators(self, self._network, self._invariants, loop, prefix)
        self._calls = clients.start(loop, self._scenario.calls)
        self._calls += clients.start_signals(loop, self._scenario.signals)
        if self._scenario.flows:
            flows = FlowClients(self, self._network, self._handlers, prefix)
            self._calls += flows.start(loop, self._scenario.flows, self._scenario.flow_actions)
        for operation in self._scenario.operations:
            loop.call_later(operation.at, self._operators.begin, operation)
        for bulk in self._scenario.bulks:
            loop.call_later(bulk.at, self._operators.start_bulk, bulk)
        ends_at = time_of(self._began + round(HORIZON_SECONDS * _MICROS))
        for plan in self._scenario.schedules:
            for at, every in ((plan.at, plan.every), *plan.edits):
                loop.call_later(at, self._operators.put_schedule, plan, every, ends_at)

    def _set_limits(self) -> None:
        for key, limit in self._scenario.limits:
            self._store.set_key_limit(key, limit)
        for queue, limit in self._scenario.queue_limits:
            self._store.set_queue_limit(queue, limit)

    def _start_managers(self, loop: MachineLoop) -> SimulatedManagers | None:
        plan = self._scenario.manager
        if plan is None:
            return None
        folder = Path(self._folder.enter_context(tempfile.TemporaryDirectory()))
        managers = SimulatedManagers(
            plan, folder, self, self._network, self._machines, self._on_manager_violation
        )
        managers.start()
        for at, seconds in plan.crashes:
            loop.call_later(at, managers.crash)
            loop.call_later(at + seconds, managers.start_again)
        return managers

    def _on_manager_violation(self, text: str) -> None:
        self._result.found_during.append(Violation("manager", 0, text, self._clock.micros))

    def _heal(self) -> None:
        """Stops all faults and starts a worker that can run every job."""
        self._stop_faults()
        self._machines.heal()
        self._machines.start(HEALTHY_WORKER)
        self.record("world", "healed")

    def _stop_faults(self) -> None:
        self._network.noise = NO_NOISE
        self._network.interrupt = None
        self._handlers.is_healed = True

    async def _until_all_have_ended(self) -> None:
        began = self._clock.micros
        while self._clock.micros < began + END_SECONDS * _MICROS:
            await asyncio.sleep(_CHECK_SECONDS)
            # An enqueue that arrives after the workers have left would never run.
            arriving = [task.get_name() for task in self._network.arriving]
            is_more_to_come = any("enqueue" in name or "flow" in name for name in arriving)
            jobs = await self._operators.tidy_up()
            self._record_waiting(jobs)
            is_over = all(job.state in FINAL and job.stage is None for job in jobs)
            is_over &= all(schedule.next_at is None for schedule in self._store.schedules())
            is_over &= not self._store.sweep_check(()).flows
            is_quiet = self._operators.are_done and all(task.done() for task in self._calls)
            for task in self._calls:
                if task.done():
                    task.result()  # raises what a client could not handle
            if (is_over or self._stands_still(jobs, began)) and is_quiet and not is_more_to_come:
                return

    def _stands_still(self, jobs: list[Job], began: int) -> bool:
        """Whether no job has changed for long, and none waits for a time. The lease of one that
        runs is renewed, which is a change."""
        now, changed_at = self._clock.micros, max(began, self._invariants.changed_at)
        return now >= changed_at + STILL_SECONDS * _MICROS and all(
            job.run_at <= time_of(now) for job in jobs
        )

    def _record_waiting(self, jobs: list[Job]) -> None:
        """Records jobs that stay claimable for long while a slot is free, for the liveness rule."""
        ready = (
            [
                job.id
                for job in jobs
                if job.stage in (Stage.READY, Stage.LANE_HEAD)
                and not self._invariants.is_limited(job.id)
            ]
            if self._has_free_slot()
            else []
        )
        since = {job_id: self._ready_since.get(job_id, self._clock.micros) for job_id in ready}
        self._ready_since = since
        for job_id, began in since.items():
            seconds = (self._clock.micros - began) / _MICROS
            if seconds > WAIT_SECONDS + len(jobs) * self._seconds_per_start():
                self.record("world", "waits", job=job_id, info={"seconds": seconds})

    def _seconds_per_start(self) -> float:
        """A rate limit on a queue makes its jobs wait even while slots are free."""
        rates = [limit.rate for _, limit in self._scenario.queue_limits if limit.rate is not None]
        return max((rate.seconds / rate.starts for rate in rates), default=0.0)

    def _has_free_slot(self) -> bool:
        return self._machines.has_free_slot(HEALTHY_WORKER.name)

    def _gather_evidence(self) -> None:
        self._evidence = gather(
            self._store,
            sorted(self._invariants.jobs),
            self._records,
            dict(self._scenario.limits),
            dict(self._scenario.queue_limits),
            LEASE_SECONDS,
            self._tenant,
            read_ledger(self._database) if self._scenario.signals else (),
        )
        self._is_over = True

    def _uncaught(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = f"{context.get('message')}: {error!r}"
        self._result.found_during.append(Violation("crash", 0, text, self._clock.micros))

    # -- the result --------------------------------------------------------------------------

    def evaluate(self) -> SimulationResult:
        result, evidence = self._result, self._evidence
        result.found_during += self._invariants.violations
        result.found_after += check(evidence)
        result.transitions = self._invariants.transitions
        for (_source, goal), count in self._invariants.transitions.items():
            result.states[goal] += count
        for events in evidence.events.values():
            result.events.update(event.kind.value for event in events)
        result.jobs = len(evidence.jobs)
        result.attempts = sum(record.kind == "started" for record in self._records)
        self._digest.update(_final(evidence).encode())
        result.digest = self._digest.hexdigest()
        return result


def _final(evidence: Evidence) -> str:
    return "\n".join(f"{job_id} {job}" for job_id, job in sorted(evidence.jobs.items()))


def trace_text(record: Record) -> str:
    parts = [record.kind]
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
