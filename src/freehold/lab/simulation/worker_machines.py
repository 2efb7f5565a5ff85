"""The machines that workers run on, and their faults."""

from __future__ import annotations

import asyncio
import contextvars
import random
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from freehold.clock import VirtualClock
from freehold.errors import StoreUnavailable
from freehold.lab.simulation.adversarial_claims import CLAIMS
from freehold.lab.simulation.machine import MACHINE, FaultTrigger, Machine, MachineLoop
from freehold.lab.simulation.network import (
    ADDITIONS,
    ENDINGS,
    FOLDS,
    RENEWALS,
    STEPS,
    SUCCESSES,
    Link,
    Network,
    statement_names,
)
from freehold.lab.simulation.scenario import BY_AGE, LEASE_SECONDS, OLDEST, Fault, WorkerPlan
from freehold.lab.simulation.tasks import tasks_before_the_deploy
from freehold.store.database import Database
from freehold.store.statements import StatementGroup
from freehold.tasks import Registry
from freehold.testing.worker import virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker

_MICROS = 1_000_000
#: A machine that is frozen for longer than this resumes when another worker has claimed its job.
LONG_SECONDS = 1.5 * LEASE_SECONDS
_LONGEST_SECONDS = 3 * LEASE_SECONDS
_JUST_AFTER_SECONDS = 0.02
#: How often a replacement checks whether the worker before it is gone.
_REPLACE_SECONDS = 1.0


class HistoryRecorder(Protocol):
    """Writes the records that the checker reads."""

    def record(self, actor: str, kind: str, **fields: Any) -> None: ...

    def record_machine_fault(self, actor: str, kind: str, until: int) -> None: ...


@dataclass(slots=True)
class WorkerMachine:
    host: Machine
    link: Link
    worker: Worker
    running: asyncio.Task[int]
    concurrency: int
    #: Called with the exit code.
    on_exit: Callable[[int], None]
    is_draining: bool = False

    @property
    def is_up(self) -> bool:
        return not self.running.done() and not self.host.is_dead


class WorkerMachines:
    """All workers of a world."""

    def __init__(
        self, recorder: HistoryRecorder, network: Network, tasks: Registry, clock: VirtualClock
    ) -> None:
        self._recorder = recorder
        self._network = network
        self._tasks = tasks
        self._older_tasks = tasks_before_the_deploy(tasks)
        self._clock = clock
        self._machines: dict[str, WorkerMachine] = {}
        self._is_healed = False

    def start(
        self,
        plan: WorkerPlan,
        slot: tuple[Path, int] | None = None,
        on_exit: Callable[[int], None] = lambda _code: None,
    ) -> None:
        before = self._machines.get(plan.replaces or "")
        loop = cast(MachineLoop, asyncio.get_running_loop())
        if plan.replaces is not None and (before is None or before.is_up):
            if not self._is_healed:
                loop.call_later(_REPLACE_SECONDS, self.start, plan)
            return
        host = Machine(plan.name, plan.rate)
        context = contextvars.copy_context()
        context.run(MACHINE.set, host)
        link, worker = context.run(self._build, plan, host, slot)
        info = {"concurrency": plan.concurrency, "misfit_seconds": plan.misfit_seconds}
        self._recorder.record(plan.name, "begun", info=info)
        running = loop.spawn(host, worker.run(), plan.name)
        self._machines[plan.name] = WorkerMachine(
            host, link, worker, running, plan.concurrency, on_exit
        )
        running.add_done_callback(lambda task: self._on_exit(plan.name, task))

    def _build(
        self, plan: WorkerPlan, host: Machine, slot: tuple[Path, int] | None
    ) -> tuple[Link, Worker]:
        link = self._network.link(host, without_notifications=plan.without_notifications)
        worker = virtual_worker(
            cast(Database, link),
            self._known_tasks(plan),
            settings_of(plan, slot),
            chance=chance_of(plan),
            owner=plan.name,
        )
        return link, worker

    def _known_tasks(self, plan: WorkerPlan) -> Registry:
        return self._tasks if plan.knows_newer else self._older_tasks

    def _on_exit(self, name: str, task: asyncio.Task[int]) -> None:
        if not task.cancelled():
            self._recorder.record(name, "exited", info={"code": task.result()})
            self._machines[name].on_exit(task.result())

    # -- faults ------------------------------------------------------------------------------

    def inject(self, fault: Fault) -> None:
        machine = self._machines.get(fault.worker) or self._by_age(fault.worker)
        if machine is None or not machine.is_up or machine.host.is_frozen:
            return
        getattr(self, f"_{fault.kind}")(machine, fault.seconds)

    def _by_age(self, which: str) -> WorkerMachine | None:
        up = [machine for machine in self._machines.values() if machine.is_up]
        if which not in BY_AGE or not up:
            return None
        return up[0] if which == OLDEST else up[-1]

    def _crash(self, machine: WorkerMachine, _seconds: float) -> None:
        machine.host.is_dead = True
        self._recorder.record_machine_fault(machine.host.name, "crash", 0)
        self._run_on_server(machine.link.machine_died())
        machine.on_exit(-signal.SIGKILL)

    def _crash_at_end(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(ENDINGS, lambda *_: self._crash(machine, seconds))

    def _crash_at_success(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(SUCCESSES, lambda *_: self._crash(machine, seconds))

    def _crash_at_renewal(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(RENEWALS, lambda *_: self._crash(machine, seconds))

    def _crash_at_claim(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(CLAIMS, lambda *_: self._crash(machine, seconds))

    def _crash_at_step(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(STEPS, lambda *_: self._crash(machine, seconds))

    def _freeze_at_step(self, machine: WorkerMachine, seconds: float) -> None:
        self._freeze_at(STEPS, machine, seconds)

    def _crash_at_fold(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(FOLDS, lambda *_: self._crash(machine, seconds))

    def _crash_at_addition(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.trigger = FaultTrigger(ADDITIONS, lambda *_: self._crash(machine, seconds))

    def _freeze_at_end(self, machine: WorkerMachine, seconds: float) -> None:
        self._freeze_at(ENDINGS, machine, seconds)

    def _freeze_at(
        self, statements: frozenset[str], machine: WorkerMachine, seconds: float
    ) -> None:
        def freeze(group: StatementGroup, network: Network) -> None:
            if seconds < LONG_SECONDS:
                self._freeze(machine, seconds)
            else:
                self._freeze(machine, _LONGEST_SECONDS)
                self._run_on_server(self._thaw_when_reclaimed(machine, group, network))

        machine.host.trigger = FaultTrigger(statements, freeze)

    async def _thaw_when_reclaimed(
        self, machine: WorkerMachine, group: StatementGroup, network: Network
    ) -> None:
        """Its late write is then sent while another attempt runs."""
        await network.claims.wait_for(group, _LONGEST_SECONDS)
        await asyncio.sleep(_JUST_AFTER_SECONDS)
        self._thaw(machine)

    def _refuse_at_end(self, machine: WorkerMachine, _seconds: float) -> None:
        """Refuses the ending once; the next try succeeds."""

        def refuse(group: StatementGroup, network: Network) -> None:
            network.on_fault(machine.host, "fail_before", statement_names(group))
            raise StoreUnavailable("simulated: the connection was refused")

        machine.host.trigger = FaultTrigger(ENDINGS, refuse)

    def _freeze(self, machine: WorkerMachine, seconds: float) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        machine.host.is_frozen = True
        self._recorder.record_machine_fault(machine.host.name, "freeze", self._until(seconds))
        self._run_on_server(machine.link.abort_transactions())
        # By the world's clock, because the machine's own may run fast or slow.
        contextvars.Context().run(loop.call_later, seconds, self._thaw, machine)

    def _run_on_server(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the server's part of a fault, outside the machine's context."""
        asyncio.get_running_loop().create_task(work, context=contextvars.Context())

    def _thaw(self, machine: WorkerMachine) -> None:
        if machine.host.is_frozen:
            self._recorder.record(machine.host.name, "thawed")
            cast(MachineLoop, asyncio.get_running_loop()).resume(machine.host)

    def _cut(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.hangs_while_cut_off = False
        self._cut_off(machine, seconds, "cut")

    def _hang(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.hangs_while_cut_off = True
        self._cut_off(machine, seconds, "hang")

    def _cut_off(self, machine: WorkerMachine, seconds: float, kind: str) -> None:
        machine.host.cut_off_until = until = self._until(seconds)
        self._recorder.record_machine_fault(machine.host.name, kind, until)
        machine.link.notify_listener(None)
        loop = asyncio.get_running_loop()
        loop.call_later(seconds + 0.001, machine.link.notify_listener, "")

    def _drain(self, machine: WorkerMachine, _seconds: float) -> None:
        self._recorder.record_machine_fault(machine.host.name, "drain", 0)
        self._call_on_machine(machine, machine.worker.drain)

    def _hurry(self, machine: WorkerMachine, seconds: float) -> None:
        self._drain(machine, seconds)
        asyncio.get_running_loop().call_later(
            0.2, self._call_on_machine, machine, machine.worker.stop_now
        )

    def signal(self, name: str, number: signal.Signals) -> None:
        """A signal that a manager sends to the worker process of this machine."""
        machine = self._machines[name]
        if number is signal.SIGKILL:
            self._crash(machine, 0.0)
        elif number is signal.SIGUSR1:
            self._call_on_machine(machine, machine.worker.drain_if_idle)
        elif machine.is_draining:
            self._call_on_machine(machine, machine.worker.stop_now)
        else:
            machine.is_draining = True
            self._drain(machine, 0.0)

    def _call_on_machine(self, machine: WorkerMachine, callback: Any) -> None:
        """Calls it in the context of the machine, as a signal handler would."""
        context = contextvars.copy_context()
        context.run(MACHINE.set, machine.host)
        asyncio.get_running_loop().call_soon(callback, context=context)

    def _until(self, seconds: float) -> int:
        return self._clock.micros + round(seconds * _MICROS)

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        self._is_healed = True
        for machine in self._machines.values():
            machine.host.trigger = None
            if machine.host.is_frozen:
                self._thaw(machine)
            if machine.host.cut_off_until > self._clock.micros:
                machine.host.cut_off_until = 0
                machine.link.notify_listener("")

    def has_free_slot(self, name: str) -> bool:
        machine = self._machines[name]
        return len(machine.worker.leases) < machine.concurrency

    async def drain_all(self, seconds: float) -> None:
        up = [machine for machine in self._machines.values() if machine.is_up]
        for machine in up:
            self._call_on_machine(machine, machine.worker.drain)
        if up:
            await asyncio.wait([machine.running for machine in up], timeout=seconds)

    async def clean_up(self) -> None:
        """Ends the remaining tasks of dead machines, after the run has been recorded."""
        loop = cast(MachineLoop, asyncio.get_running_loop())
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for machine in self._machines.values():
            machine.host.cut_off_until = 2**62
            machine.host.hangs_while_cut_off = False
            loop.resume(machine.host)
        for task in others:
            task.cancel()
        while others:
            _, pending = await asyncio.wait(others, timeout=10 * LEASE_SECONDS)
            others = list(pending)
            for task in others:
                task.cancel()


def chance_of(plan: WorkerPlan) -> Callable[[], float]:
    return random.Random(f"chance/{plan.name}").random


def settings_of(plan: WorkerPlan, slot: tuple[Path, int] | None = None) -> WorkerSettings:
    folder, file = slot or (None, None)
    return WorkerSettings(
        queues=plan.queues,
        concurrency=plan.concurrency,
        lease_timeout_seconds=LEASE_SECONDS,
        shutdown_grace_seconds=plan.grace_seconds,
        request_poll_seconds=0.5,
        poll_interval_ms=500.0,
        misfit_seconds=plan.misfit_seconds,
        managed_in=folder,
        slot_file=file,
    )
