"""Workers that neither work nor end: told by their silence, asked to go, ended at last.

The processes are real, the hours that pass are given.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from freehold.manager.fleet import OVERDUE_SECONDS, REST_SECONDS, SILENT_SECONDS, Fleet
from freehold.model.worker_info import LiveWorker, WorkerState
from tests.worker.fleet import eventually

GRACE_SECONDS = 300.0
#: Obeys nothing but a kill: SIGTERM and SIGUSR1 are written down instead.
_DEAF = """
import os, signal, sys, time
from freehold.manager.process_slots import Sitter, sit
def heard(number, _):
    with open(sys.argv[1] + ".heard", "a") as file:
        print(signal.Signals(number).name, file=file)
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, heard)
sit(int(sys.argv[-1]), Sitter(os.getpid(), f"w{os.getpid()}"))
while True:
    time.sleep(1)
"""


class Deaf:
    """A fleet of processes that do not end by themselves."""

    def __init__(self, folder: Path, most: int = 2) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.fleet = Fleet(folder, most, self._start, GRACE_SECONDS)

    def _start(self, arguments: Sequence[str], seat: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _DEAF, str(self.folder / "deaf"), *arguments]
        process = subprocess.Popen(command, pass_fds=(seat,))
        self.processes.append(process)
        return process

    def start(self, count: int, now: float) -> None:
        self.fleet.start(count, now)
        eventually(lambda: len(self.fleet.owners) == len(self.fleet))

    def heard(self, *words: str) -> bool:
        file = self.folder / "deaf.heard"
        return file.exists() and file.read_text().split() == list(words)

    def registered(self, **fields: Any) -> dict[str, LiveWorker]:
        now = datetime.now(UTC)
        return {
            owner: LiveWorker(
                owner=owner,
                host="h",
                pid=1,
                concurrency=1,
                queues=(),
                tasks=(),
                version="1",
                started_at=now,
                seen_at=now,
                expires_at=now,
                **fields,
            )
            for owner in self.fleet.owners
        }

    @property
    def alive(self) -> int:
        return sum(process.poll() is None for process in self.processes)


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Deaf]:
    deaf = Deaf(tmp_path)
    yield deaf
    for process in deaf.processes:
        process.kill()
        process.wait()


@pytest.mark.requirement("S2.11")
def test_a_worker_that_nobody_hears_is_drained_and_then_killed(deaf: Deaf) -> None:
    deaf.start(1, now=0.0)
    deaf.fleet.heard({}, now=1.0)
    deaf.fleet.heard({}, now=SILENT_SECONDS)
    assert len(deaf.fleet.working(SILENT_SECONDS)) == 1
    drained = SILENT_SECONDS + 1.0
    deaf.fleet.heard({}, now=drained)
    assert deaf.fleet.working(drained) == []
    eventually(lambda: deaf.heard("SIGTERM"))
    deaf.fleet.reap(drained + OVERDUE_SECONDS - 1.0)
    assert deaf.alive == 1
    deaf.fleet.reap(drained + OVERDUE_SECONDS)
    eventually(lambda: deaf.alive == 0)
    deaf.fleet.reap(drained + OVERDUE_SECONDS)
    assert (len(deaf.fleet), deaf.fleet.killed) == (0, 1)


def test_nobody_is_taken_for_silent_while_the_store_does_not_answer(deaf: Deaf) -> None:
    deaf.start(1, now=0.0)
    deaf.fleet.heard({}, now=1.0)
    deaf.fleet.heard_nothing()
    deaf.fleet.heard({}, now=SILENT_SECONDS * 10)
    assert len(deaf.fleet.working(SILENT_SECONDS * 10)) == 1


@pytest.mark.requirement("S4.11")
def test_one_that_is_heard_of_has_its_whole_grace_to_drain(deaf: Deaf) -> None:
    deaf.start(1, now=0.0)
    deaf.fleet.drain(now=10.0)
    deaf.fleet.drain(now=20.0)  # asked once: a second signal would hurry it
    eventually(lambda: deaf.heard("SIGTERM"))
    end = 10.0 + GRACE_SECONDS + OVERDUE_SECONDS
    for now in (100.0, end - 1.0):
        deaf.fleet.heard(deaf.registered(state=WorkerState.DRAINING), now)
        deaf.fleet.reap(now)
    assert deaf.alive == 1
    deaf.fleet.reap(end)
    eventually(lambda: deaf.alive == 0)


@pytest.mark.requirement("S2.9")
@pytest.mark.parametrize("state", [WorkerState.DRAINING, WorkerState.STUCK])
def test_one_that_goes_by_itself_is_no_help_but_has_its_seat(deaf: Deaf, state: str) -> None:
    deaf.start(2, now=0.0)
    deaf.fleet.heard(deaf.registered(state=state), now=1.0)
    assert deaf.fleet.working(1.0) == []
    deaf.fleet.start(2, now=1.0)
    assert (len(deaf.fleet), deaf.alive) == (2, 2)


@pytest.mark.requirement("S2.9")
def test_one_that_did_not_go_when_asked_counts_again(deaf: Deaf) -> None:
    deaf.start(2, now=0.0)
    deaf.fleet.rest(list(deaf.fleet)[:1], now=1.0)
    eventually(lambda: deaf.heard("SIGUSR1"))
    assert len(deaf.fleet.working(1.0)) == 1
    assert len(deaf.fleet.working(1.0 + REST_SECONDS)) == 2


@pytest.mark.requirement("S2.11")
def test_those_who_sit_there_are_taken_over_and_can_be_asked(deaf: Deaf) -> None:
    deaf.start(2, now=0.0)
    heir = Deaf(deaf.folder)
    heir.fleet.adopt(now=5.0)
    assert sorted(heir.fleet.owners) == sorted(deaf.fleet.owners)
    heir.fleet.start(2, now=5.0)
    assert heir.processes == []
    heir.fleet.drain(now=6.0)
    eventually(lambda: deaf.heard("SIGTERM", "SIGTERM"))
    for process in deaf.processes:
        os.kill(process.pid, 9)
        process.wait()
    heir.fleet.reap(7.0)
    assert len(heir.fleet) == 0
