"""The machines that workers run on, and what befalls them."""

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
from freehold.lab.simulation.network import ENDINGS, RENEWALS, SUCCESSES, Link, Network, names
from freehold.lab.simulation.scenario import BY_AGE, LEASE_SECONDS, OLDEST, Fault, WorkerPlan
from freehold.store.database import Database
from freehold.store.statements import StatementGroup
from freehold.tasks import Registry
from freehold.testing.worker import virtual_worker
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker

_MICROS = 1_000_000
#: Who is frozen for longer than this goes on when its job has been claimed by somebody else.
LONG_SECONDS = 1.5 * LEASE_SECONDS
_LONGEST_SECONDS = 3 * LEASE_SECONDS
_JUST_AFTER_SECONDS = 0.02
#: Whoever watches over workers looks so often.
_AGAIN_SECONDS = 1.0


class HistoryRecorder(Protocol):
    """Who writes down what happens."""

    def note(self, who: str, what: str, **fields: Any) -> None: ...

    def struck(self, who: str, kind: str, until: int) -> None: ...


@dataclass(slots=True)
class WorkerMachine:
    host: Machine
    line: Link
    worker: Worker
    running: asyncio.Task[int]
    concurrency: int
    #: Told its exit code, once it is no more.
    on_gone: Callable[[int], None]
    is_asked: bool = False

    @property
    def is_up(self) -> bool:
        return not self.running.done() and not self.host.is_dead


class WorkerMachines:
    """All workers of a world."""

    def __init__(
        self, scribe: HistoryRecorder, network: Network, tasks: Registry, clock: VirtualClock
    ) -> None:
        self._scribe = scribe
        self._network = network
        self._tasks = tasks
        self._older = Registry()
        for task in tasks:
            if task.name != "newer":
                self._older.add(task)
        self._clock = clock
        self._machines: dict[str, WorkerMachine] = {}
        self._is_healed = False

    def start(
        self,
        plan: WorkerPlan,
        seat: tuple[Path, int] | None = None,
        on_gone: Callable[[int], None] = lambda _code: None,
    ) -> None:
        before = self._machines.get(plan.replaces or "")
        loop = cast(MachineLoop, asyncio.get_running_loop())
        if plan.replaces is not None and (before is None or before.is_up):
            if not self._is_healed:
                loop.call_later(_AGAIN_SECONDS, self.start, plan)
            return
        host = Machine(plan.name, plan.rate)
        line, worker = self._build(plan, host, seat)
        self._scribe.note(plan.name, "begun", info={"concurrency": plan.concurrency})
        running = loop.spawn(host, worker.run(), plan.name)
        self._machines[plan.name] = WorkerMachine(
            host, line, worker, running, plan.concurrency, on_gone
        )
        running.add_done_callback(lambda task: self._exited(plan.name, task))

    def _build(
        self, plan: WorkerPlan, host: Machine, seat: tuple[Path, int] | None
    ) -> tuple[Link, Worker]:
        line = self._network.line(host, is_deaf=plan.is_deaf)
        worker = virtual_worker(
            cast(Database, line),
            self._known_to(plan),
            settings_of(plan, seat),
            chance=chance_of(plan),
            owner=plan.name,
        )
        return line, worker

    def _known_to(self, plan: WorkerPlan) -> Registry:
        return self._tasks if plan.knows_newer else self._older

    def _exited(self, name: str, task: asyncio.Task[int]) -> None:
        if not task.cancelled():
            self._scribe.note(name, "exited", info={"code": task.result()})
            self._machines[name].on_gone(task.result())

    # -- faults ------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
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
        self._scribe.struck(machine.host.name, "crash", 0)
        self._outside(machine.line.left_behind())
        machine.on_gone(-signal.SIGKILL)

    def _crash_at_end(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.ambush = FaultTrigger(ENDINGS, lambda *_: self._crash(machine, seconds))

    def _crash_at_success(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.ambush = FaultTrigger(SUCCESSES, lambda *_: self._crash(machine, seconds))

    def _crash_at_renewal(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.ambush = FaultTrigger(RENEWALS, lambda *_: self._crash(machine, seconds))

    def _crash_at_claim(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.ambush = FaultTrigger(CLAIMS, lambda *_: self._crash(machine, seconds))

    def _freeze_at_end(self, machine: WorkerMachine, seconds: float) -> None:
        def freeze(batch: StatementGroup, network: Network) -> None:
            if seconds < LONG_SECONDS:
                self._freeze(machine, seconds)
            else:
                self._freeze(machine, _LONGEST_SECONDS)
                self._outside(self._thaw_when_reclaimed(machine, batch, network))

        machine.host.ambush = FaultTrigger(ENDINGS, freeze)

    async def _thaw_when_reclaimed(
        self, machine: WorkerMachine, batch: StatementGroup, network: Network
    ) -> None:
        """With its late word on its lips."""
        await network.reclaims.of(batch, _LONGEST_SECONDS)
        await asyncio.sleep(_JUST_AFTER_SECONDS)
        self._thaw(machine)

    def _refuse_at_end(self, machine: WorkerMachine, _seconds: float) -> None:
        """Once: whoever tries again is heard."""

        def refuse(batch: StatementGroup, network: Network) -> None:
            network.told(machine.host, "fail_before", names(batch))
            raise StoreUnavailable("simulated: the connection was refused")

        machine.host.ambush = FaultTrigger(ENDINGS, refuse)

    def _freeze(self, machine: WorkerMachine, seconds: float) -> None:
        loop = cast(MachineLoop, asyncio.get_running_loop())
        machine.host.is_frozen = True
        self._scribe.struck(machine.host.name, "freeze", self._until(seconds))
        self._outside(machine.line.break_off())
        # By the world's clock, whoever sprang it: the machine's own may run fast or slow.
        contextvars.Context().run(loop.call_later, seconds, self._thaw, machine)

    def _outside(self, work: Coroutine[Any, Any, None]) -> None:
        """What the server does, whoever made it do so."""
        asyncio.get_running_loop().create_task(work, context=contextvars.Context())

    def _thaw(self, machine: WorkerMachine) -> None:
        if machine.host.is_frozen:
            self._scribe.note(machine.host.name, "thawed")
            cast(MachineLoop, asyncio.get_running_loop()).go_on(machine.host)

    def _cut(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.hangs_while_cut_off = False
        self._cut_off(machine, seconds, "cut")

    def _hang(self, machine: WorkerMachine, seconds: float) -> None:
        machine.host.hangs_while_cut_off = True
        self._cut_off(machine, seconds, "hang")

    def _cut_off(self, machine: WorkerMachine, seconds: float, kind: str) -> None:
        machine.host.cut_off_until = until = self._until(seconds)
        self._scribe.struck(machine.host.name, kind, until)
        machine.line.tell_listener(None)
        loop = asyncio.get_running_loop()
        loop.call_later(seconds + 0.001, machine.line.tell_listener, "")

    def _drain(self, machine: WorkerMachine, _seconds: float) -> None:
        self._scribe.struck(machine.host.name, "drain", 0)
        self._call(machine, machine.worker.drain)

    def _hurry(self, machine: WorkerMachine, seconds: float) -> None:
        self._drain(machine, seconds)
        asyncio.get_running_loop().call_later(0.2, self._call, machine, machine.worker.hurry)

    def signal(self, name: str, number: signal.Signals) -> None:
        """From a manager, as the machine's own process would have it."""
        machine = self._machines[name]
        if number is signal.SIGKILL:
            self._crash(machine, 0.0)
        elif number is signal.SIGUSR1:
            self._call(machine, machine.worker._rest)
        elif machine.is_asked:
            self._call(machine, machine.worker.hurry)
        else:
            machine.is_asked = True
            self._drain(machine, 0.0)

    def _call(self, machine: WorkerMachine, what: Any) -> None:
        """As a signal would, on the machine itself."""
        context = contextvars.copy_context()
        context.run(MACHINE.set, machine.host)
        asyncio.get_running_loop().call_soon(what, context=context)

    def _until(self, seconds: float) -> int:
        return self._clock.micros + round(seconds * _MICROS)

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        self._is_healed = True
        for machine in self._machines.values():
            machine.host.ambush = None
            if machine.host.is_frozen:
                self._thaw(machine)
            if machine.host.cut_off_until > self._clock.micros:
                machine.host.cut_off_until = 0
                machine.line.tell_listener("")

    def has_room(self, name: str) -> bool:
        machine = self._machines[name]
        return len(machine.worker.hand) < machine.concurrency

    async def drain_all(self, seconds: float) -> None:
        up = [machine for machine in self._machines.values() if machine.is_up]
        for machine in up:
            self._call(machine, machine.worker.drain)
        if up:
            await asyncio.wait([machine.running for machine in up], timeout=seconds)

    async def clear_away(self) -> None:
        """What is left of the dead ends now, when nobody looks any more."""
        loop = cast(MachineLoop, asyncio.get_running_loop())
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for machine in self._machines.values():
            machine.host.cut_off_until = 2**62
            machine.host.hangs_while_cut_off = False
            loop.go_on(machine.host)
        for task in others:
            task.cancel()
        while others:
            _, pending = await asyncio.wait(others, timeout=10 * LEASE_SECONDS)
            others = list(pending)
            for task in others:
                task.cancel()


def chance_of(plan: WorkerPlan) -> Callable[[], float]:
    return random.Random(f"chance/{plan.name}").random


def settings_of(plan: WorkerPlan, seat: tuple[Path, int] | None = None) -> WorkerSettings:
    folder, file = seat or (None, None)
    return WorkerSettings(
        queues=plan.queues,
        concurrency=plan.concurrency,
        lease_seconds=LEASE_SECONDS,
        grace_seconds=plan.grace_seconds,
        request_poll_seconds=0.5,
        poll_seconds=0.5,
        managed_in=folder,
        seat=file,
    )
