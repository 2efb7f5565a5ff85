"""The real manager with simulated machines as its worker processes.

Process slots are real files with real locks; a machine keeps its slot open as long as it is alive.
Killing a manager cancels its task, which also frees its lock, as the kernel would.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from freehold.exit_codes import EXIT_KILLED
from freehold.lab.simulation.machine import Machine, MachineLoop
from freehold.lab.simulation.network import Network
from freehold.lab.simulation.scenario import QUEUES, ManagerPlan, WorkerPlan
from freehold.lab.simulation.worker_machines import HistoryRecorder, WorkerMachines
from freehold.manager import process_slots
from freehold.manager.manager import Manager
from freehold.model.scaling import ScaleRule
from freehold.store.database import Database
from freehold.store.store import AsyncStore

#: How long to wait for a replacement; workers that keep dying are restarted ever more slowly.
REPLACE_SECONDS = 40.0
_STOP_SECONDS = 30.0
_CHECK_SECONDS = 0.5
_GRACE_SECONDS = 3.0


class SimulatedProcess:
    """A machine as its manager sees it."""

    def __init__(self, name: str, pid: int, slot: int, machines: WorkerMachines) -> None:
        self.name = name
        self.pid = pid
        self.slot = slot
        self._machines = machines
        self._code: int | None = None

    @property
    def is_alive(self) -> bool:
        return self._code is None

    def poll(self) -> int | None:
        return self._code

    def send_signal(self, sig: int) -> None:
        if self.is_alive:
            self._machines.signal(self.name, signal.Signals(sig))

    def ended(self, code: int) -> None:
        if self.is_alive:
            self._code = code
            process_slots.leave_slot(self.slot)


class SimulatedManagers:
    """One manager at a time; each one that is killed is followed by another."""

    def __init__(
        self,
        plan: ManagerPlan,
        folder: Path,
        recorder: HistoryRecorder,
        network: Network,
        machines: WorkerMachines,
        violate: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._recorder = recorder
        self._network = network
        self._machines = machines
        self._violate = violate
        self._loop = cast(MachineLoop, asyncio.get_running_loop())
        self._processes: list[SimulatedProcess] = []
        self._count = 0
        self._manager: Manager | None = None
        self._running: asyncio.Task[Any] | None = None

    def start(self) -> None:
        self._count += 1
        machine = Machine(f"manager{self._count}")
        store = AsyncStore(cast(Database, self._network.link(machine)).async_session())
        rule = ScaleRule(
            default_count=self._plan.default_count,
            max_count=self._plan.max_count,
            concurrency=self._plan.concurrency,
            cooldown_seconds=1.5,
        )
        self._manager = Manager(
            store,
            rule,
            self._start_worker,
            self._folder,
            queues=QUEUES,
            scale_seconds=0.5,
            grace_seconds=_GRACE_SECONDS,
            name=machine.name,
            kill=self._kill,
            is_group_gone=lambda _pid: True,  # a simulated worker has no child processes
        )
        self._recorder.record(machine.name, "begun")
        self._running = self._loop.spawn(machine, self._manager.run(), machine.name)

    @property
    def _is_managed(self) -> bool:
        return self._running is not None and not self._running.done()

    def start_again(self) -> None:
        """Starts a manager unless one is running."""
        if not self._is_managed:
            self.start()

    def crash(self) -> None:
        if self._running is not None and self._is_managed:
            self._recorder.record_machine_fault(f"manager{self._count}", "manager_crash", 0)
            self._running.cancel()

    @property
    def alive(self) -> list[SimulatedProcess]:
        return [process for process in self._processes if process.is_alive]

    def _start_worker(self, _arguments: Sequence[str], slot: int) -> SimulatedProcess:
        number = len(self._processes) + 1
        process = SimulatedProcess(f"m{number}", number, os.dup(slot), self._machines)
        self._processes.append(process)
        if len(self.alive) > self._plan.max_count:
            self._violate(f"{len(self.alive)} workers run; the maximum is {self._plan.max_count}")
        plan = WorkerPlan(
            0.0,
            process.name,
            QUEUES,
            self._plan.concurrency,
            1.0,
            knows_newer=True,
            grace_seconds=_GRACE_SECONDS,
        )
        self._machines.start(plan, (self._folder, process.slot), process.ended)
        return process

    def _kill(self, slot_owner: process_slots.SlotOwner, number: signal.Signals) -> None:
        for process in self.alive:
            if process.name == slot_owner.owner:
                process.send_signal(number)

    # -- after healing -----------------------------------------------------------------------

    async def stop(self) -> None:
        """Checks that dead workers are replaced, that all drain, and that the manager ends."""
        for _ in range(round(REPLACE_SECONDS / _CHECK_SECONDS)):
            if self._is_managed and len(self.alive) >= self._plan.default_count:
                break
            await asyncio.sleep(_CHECK_SECONDS)
        else:
            self._violate(f"{len(self.alive)} workers run: dead workers were not replaced")
        assert self._manager is not None
        assert self._running is not None
        self._manager.stop()
        await asyncio.wait([self._running], timeout=_STOP_SECONDS)
        if not self._running.done():
            self._violate("the manager did not end")
        elif self.alive:
            self._violate(f"{len(self.alive)} workers still ran after their manager had stopped")
        elif self._running.result() == EXIT_KILLED:
            self._violate("the manager had to kill healthy workers")

    def clean_up(self) -> None:
        for process in self.alive:
            process.ended(-signal.SIGKILL)
