"""Workers that neither work nor end: found by missing heartbeats, drained, and finally killed.

The processes are real; the time is an argument.
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

from freehold.manager.fleet import IDLE_STOP_SECONDS, OVERDUE_SECONDS, SILENT_SECONDS, Fleet
from freehold.model.worker_info import LiveWorker, WorkerState
from tests.worker.fleet import eventually

GRACE_SECONDS = 300.0
#: Ends by SIGKILL only: it logs SIGTERM and SIGUSR1 instead of obeying them.
_UNSTOPPABLE = """
import os, signal, sys, time
from freehold.manager.process_slots import SlotOwner, take_slot
def log(number, _):
    with open(sys.argv[1] + ".signals", "a") as file:
        print(signal.Signals(number).name, file=file)
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, log)
take_slot(int(sys.argv[-1]), SlotOwner(os.getpid(), f"w{os.getpid()}"))
while True:
    time.sleep(1)
"""


class UnstoppableFleet:
    """A fleet of processes that do not end by themselves."""

    def __init__(self, folder: Path, max_count: int = 2) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.fleet = Fleet(folder, max_count, self._start, GRACE_SECONDS)

    def _start(self, arguments: Sequence[str], slot_file: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _UNSTOPPABLE, str(self.folder / "worker"), *arguments]
        process = subprocess.Popen(command, pass_fds=(slot_file,))
        self.processes.append(process)
        return process

    def start(self, count: int, now: float) -> None:
        self.fleet.start(count, now)
        eventually(lambda: len(self.fleet.owners) == len(self.fleet))

    def received(self, *signals: str) -> bool:
        file = self.folder / "worker.signals"
        return file.exists() and file.read_text().split() == list(signals)

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
def unstoppable(tmp_path: Path) -> Iterator[UnstoppableFleet]:
    unstoppable = UnstoppableFleet(tmp_path)
    yield unstoppable
    for process in unstoppable.processes:
        process.kill()
        process.wait()


@pytest.mark.requirement("S2.11")
def test_a_worker_without_heartbeats_is_drained_and_then_killed(
    unstoppable: UnstoppableFleet,
) -> None:
    unstoppable.start(1, now=0.0)
    unstoppable.fleet.record_heartbeats({}, now=1.0)
    unstoppable.fleet.record_heartbeats({}, now=SILENT_SECONDS)
    assert len(unstoppable.fleet.working(SILENT_SECONDS)) == 1
    drained = SILENT_SECONDS + 1.0
    unstoppable.fleet.record_heartbeats({}, now=drained)
    assert unstoppable.fleet.working(drained) == []
    eventually(lambda: unstoppable.received("SIGTERM"))
    unstoppable.fleet.reap(drained + OVERDUE_SECONDS - 1.0)
    assert unstoppable.alive == 1
    unstoppable.fleet.reap(drained + OVERDUE_SECONDS)
    eventually(lambda: unstoppable.alive == 0)
    unstoppable.fleet.reap(drained + OVERDUE_SECONDS)
    assert (len(unstoppable.fleet), unstoppable.fleet.killed) == (0, 1)


def test_missing_heartbeats_do_not_count_while_the_store_is_unreachable(
    unstoppable: UnstoppableFleet,
) -> None:
    unstoppable.start(1, now=0.0)
    unstoppable.fleet.record_heartbeats({}, now=1.0)
    unstoppable.fleet.ignore_silence()
    unstoppable.fleet.record_heartbeats({}, now=SILENT_SECONDS * 10)
    assert len(unstoppable.fleet.working(SILENT_SECONDS * 10)) == 1


@pytest.mark.requirement("S4.11")
def test_a_worker_with_heartbeats_has_its_whole_grace_period_to_drain(
    unstoppable: UnstoppableFleet,
) -> None:
    unstoppable.start(1, now=0.0)
    unstoppable.fleet.drain(now=10.0)
    unstoppable.fleet.drain(now=20.0)  # signaled once: a second signal would stop its jobs
    eventually(lambda: unstoppable.received("SIGTERM"))
    end = 10.0 + GRACE_SECONDS + OVERDUE_SECONDS
    for now in (100.0, end - 1.0):
        unstoppable.fleet.record_heartbeats(unstoppable.registered(state=WorkerState.DRAINING), now)
        unstoppable.fleet.reap(now)
    assert unstoppable.alive == 1
    unstoppable.fleet.reap(end)
    eventually(lambda: unstoppable.alive == 0)


@pytest.mark.requirement("S2.9")
@pytest.mark.parametrize("state", [WorkerState.DRAINING, WorkerState.STUCK])
def test_a_worker_that_drains_by_itself_does_not_count_but_keeps_its_slot(
    unstoppable: UnstoppableFleet, state: str
) -> None:
    unstoppable.start(2, now=0.0)
    unstoppable.fleet.record_heartbeats(unstoppable.registered(state=state), now=1.0)
    assert unstoppable.fleet.working(1.0) == []
    unstoppable.fleet.start(2, now=1.0)
    assert (len(unstoppable.fleet), unstoppable.alive) == (2, 2)


@pytest.mark.requirement("S2.9")
def test_a_worker_that_was_not_idle_when_asked_to_end_counts_again(
    unstoppable: UnstoppableFleet,
) -> None:
    unstoppable.start(2, now=0.0)
    unstoppable.fleet.stop_if_idle(list(unstoppable.fleet)[:1], now=1.0)
    eventually(lambda: unstoppable.received("SIGUSR1"))
    assert len(unstoppable.fleet.working(1.0)) == 1
    assert len(unstoppable.fleet.working(1.0 + IDLE_STOP_SECONDS)) == 2


@pytest.mark.requirement("S2.11")
def test_workers_found_in_their_slots_are_adopted_and_can_be_drained(
    unstoppable: UnstoppableFleet,
) -> None:
    unstoppable.start(2, now=0.0)
    next_fleet = UnstoppableFleet(unstoppable.folder)
    next_fleet.fleet.adopt(now=5.0)
    assert sorted(next_fleet.fleet.owners) == sorted(unstoppable.fleet.owners)
    next_fleet.fleet.start(2, now=5.0)
    assert next_fleet.processes == []
    next_fleet.fleet.drain(now=6.0)
    eventually(lambda: unstoppable.received("SIGTERM", "SIGTERM"))
    for process in unstoppable.processes:
        os.kill(process.pid, 9)
        process.wait()
    next_fleet.fleet.reap(7.0)
    assert len(next_fleet.fleet) == 0
