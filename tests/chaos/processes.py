"""The processes of a run, forked from one that has all modules loaded, so that they start fast."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.chaos.operators import operate
from tests.chaos.plan import Plan
from tests.chaos.producer import produce
from tests.chaos.worker import work

_CONTEXT = multiprocessing.get_context("forkserver")
_ROLES: dict[str, Callable[[Plan, str, str], None]] = {
    "worker": work,
    "producer": produce,
    "operator": operate,
}


def _live(role: str, plan: Plan, url: str, name: str, log: Path) -> None:
    """Runs in the new process, which ends with its parent even if the parent is killed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    _ROLES[role](plan, url, name)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)


class ChaosProcess:
    """One process."""

    def __init__(self, role: str, plan: Plan, url: str, name: str) -> None:
        self.name = name
        self.is_draining = False
        self.is_frozen = False
        arguments = (role, plan, url, name, plan.folder / f"{role}s.log")
        self._process: BaseProcess = _CONTEXT.Process(target=_live, args=arguments, daemon=True)
        self._process.start()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    @property
    def code(self) -> int | None:
        return self._process.exitcode

    @property
    def is_undisturbed(self) -> bool:
        """Whether no fault is under way."""
        return self.is_alive and not self.is_draining and not self.is_frozen

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def end(self, seconds: float) -> bool:
        self._process.join(seconds)
        return not self._process.is_alive()


class Processes:
    """All processes of a run. Workers that end are replaced under a new name."""

    def __init__(self, plan: Plan, url_for: Callable[[str], str]) -> None:
        _CONTEXT.set_forkserver_preload(["tests.chaos.processes"])
        self._plan = plan
        self._url_for = url_for
        self._started_count = 0
        self.workers: list[ChaosProcess] = []
        self.others: list[ChaosProcess] = []

    def start_others(self) -> None:
        for number in range(self._plan.producers):
            self.others.append(self._start("producer", f"p{number + 1}"))
        self.others.append(self._start("operator", "operator"))

    def _start(self, role: str, name: str) -> ChaosProcess:
        return ChaosProcess(role, self._plan, self._url_for(name), name)

    def refill(self) -> list[ChaosProcess]:
        """Replaces the workers that have ended, and returns those."""
        gone = [worker for worker in self.workers if not worker.is_alive]
        self.workers = [worker for worker in self.workers if worker not in gone]
        # Frozen and draining workers do not count, so that some workers are always available.
        undisturbed = sum(worker.is_undisturbed for worker in self.workers)
        for _ in range(
            min(self._plan.workers - undisturbed, 2 * self._plan.workers - len(self.workers))
        ):
            self._started_count += 1
            self.workers.append(self._start("worker", f"w{self._started_count}"))
        return gone

    def undisturbed(self) -> list[ChaosProcess]:
        return [worker for worker in self.workers if worker.is_undisturbed]

    def destroy(self) -> None:
        for process in (*self.workers, *self.others):
            process.send(signal.SIGKILL)
            process.end(5.0)
