"""The real manager, whose worker processes are simulated machines.

Seats are real files with real locks: a machine keeps its own open as long as it lives. A manager
that is killed is a task that is cancelled; its chair is free, as the kernel would see to.
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

#: Where workers keep dying, the next one is waited for as long.
REPLACE_SECONDS = 40.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 3.0


class SimulatedProcess:
    """A machine as its manager sees it."""

    def __init__(self, name: str, pid: int, seat: int, machines: WorkerMachines) -> None:
        self.name = name
        self.pid = pid
        self.seat = seat
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
            process_slots.leave_slot(self.seat)


class SimulatedManagers:
    """One after the other: a manager that was killed is followed by another."""

    def __init__(
        self,
        plan: ManagerPlan,
        folder: Path,
        scribe: HistoryRecorder,
        network: Network,
        machines: WorkerMachines,
        violate: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._scribe = scribe
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
        host = Machine(f"manager{self._count}")
        store = AsyncStore(cast(Database, self._network.line(host)).async_session())
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
            name=host.name,
            kill=self._kill,
        )
        self._scribe.note(host.name, "begun")
        self._running = self._loop.spawn(host, self._manager.run(), host.name)

    @property
    def _is_managed(self) -> bool:
        return self._running is not None and not self._running.done()

    def start_again(self) -> None:
        """If there is none: the one before was killed."""
        if not self._is_managed:
            self.start()

    def crash(self) -> None:
        if self._running is not None and self._is_managed:
            self._scribe.struck(f"manager{self._count}", "manager_crash", 0)
            self._running.cancel()

    @property
    def alive(self) -> list[SimulatedProcess]:
        return [process for process in self._processes if process.is_alive]

    def _start_worker(self, _arguments: Sequence[str], seat: int) -> SimulatedProcess:
        number = len(self._processes) + 1
        process = SimulatedProcess(f"m{number}", number, os.dup(seat), self._machines)
        self._processes.append(process)
        if len(self.alive) > self._plan.max_count:
            self._violate(f"{len(self.alive)} workers live, of at most {self._plan.max_count}")
        plan = WorkerPlan(
            0.0,
            process.name,
            QUEUES,
            self._plan.concurrency,
            1.0,
            knows_newer=True,
            grace_seconds=_GRACE_SECONDS,
        )
        self._machines.start(plan, (self._folder, process.seat), process.ended)
        return process

    def _kill(self, sitter: process_slots.SlotOwner, number: signal.Signals) -> None:
        for process in self.alive:
            if process.name == sitter.owner:
                process.send_signal(number)

    # -- after healing -----------------------------------------------------------------------

    async def stop(self) -> None:
        """The dead have been replaced by now, or soon; then all drain, and the manager ends."""
        for _ in range(round(REPLACE_SECONDS / _LOOK_SECONDS)):
            if self._is_managed and len(self.alive) >= self._plan.default_count:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            self._violate(f"{len(self.alive)} workers live: the dead are not replaced")
        assert self._manager is not None
        assert self._running is not None
        self._manager.stop()
        await asyncio.wait([self._running], timeout=_STOP_SECONDS)
        if not self._running.done():
            self._violate("the manager does not end")
        elif self.alive:
            self._violate(f"{len(self.alive)} workers outlive their manager, which was told to end")
        elif self._running.result() == EXIT_KILLED:
            self._violate("the manager had to kill workers that were well")

    def clear_away(self) -> None:
        for process in self.alive:
            process.ended(-signal.SIGKILL)
