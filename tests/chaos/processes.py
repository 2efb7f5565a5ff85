"""The processes of a run: forked from one that has everything loaded, so that they start fast."""

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

from tests.chaos.operating import operate
from tests.chaos.plan import Plan
from tests.chaos.producing import produce
from tests.chaos.working import work

_CONTEXT = multiprocessing.get_context("forkserver")
_ROLES: dict[str, Callable[[Plan, str, str], None]] = {
    "worker": work,
    "producer": produce,
    "operator": operate,
}


def _live(role: str, plan: Plan, url: str, name: str, log: Path) -> None:
    """In the new process. It ends with the one that started the run, whatever happens to that."""
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


class Member:
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
    def is_whole(self) -> bool:
        """Nothing has befallen it so far."""
        return self.is_alive and not self.is_draining and not self.is_frozen

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def end(self, seconds: float) -> bool:
        self._process.join(seconds)
        return not self._process.is_alive()


class Processes:
    """Everybody who is there. Workers that end are replaced, under a new name."""

    def __init__(self, plan: Plan, url_for: Callable[[str], str]) -> None:
        _CONTEXT.set_forkserver_preload(["tests.chaos.processes"])
        self._plan = plan
        self._url_for = url_for
        self._born = 0
        self.workers: list[Member] = []
        self.others: list[Member] = []

    def start_others(self) -> None:
        for number in range(self._plan.producers):
            self.others.append(self._start("producer", f"p{number + 1}"))
        self.others.append(self._start("operator", "operator"))

    def _start(self, role: str, name: str) -> Member:
        return Member(role, self._plan, self._url_for(name), name)

    def refill(self) -> list[Member]:
        """Replace those that have ended; answers them."""
        gone = [worker for worker in self.workers if not worker.is_alive]
        self.workers = [worker for worker in self.workers if worker not in gone]
        # A frozen or draining one does not count: there is always somebody who works.
        able = sum(worker.is_whole for worker in self.workers)
        for _ in range(min(self._plan.workers - able, 2 * self._plan.workers - len(self.workers))):
            self._born += 1
            self.workers.append(self._start("worker", f"w{self._born}"))
        return gone

    def whole(self) -> list[Member]:
        return [worker for worker in self.workers if worker.is_whole]

    def destroy(self) -> None:
        for member in (*self.workers, *self.others):
            member.send(signal.SIGKILL)
            member.end(5.0)
