"""A worker that is frozen (SIGSTOP) for longer than its lease, and then continues."""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from freehold.model.history import EventKind
from freehold.store.sqlite.write_lock import QUEUE_LOCK, WRITE_LOCK
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, WorkerProcess, eventually

LEASE = 1.0
STOPPED = "stopped: lease_lost, held: False"


def freeze(fleet: Fleet, worker: WorkerProcess) -> None:
    """Not while it writes: on SQLite a process frozen with the write lock blocks all others."""
    eventually(lambda: _freeze_once(fleet, worker))


def _freeze_once(fleet: Fleet, worker: WorkerProcess) -> bool:
    worker.send(signal.SIGSTOP)
    eventually(lambda: _state_of(worker.pid) == "T")
    if fleet.is_postgres or _write_lock_is_free(Path(fleet.url)):
        return True
    worker.send(signal.SIGCONT)
    return False


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _write_lock_is_free(path: Path) -> bool:
    locks = [os.open(f"{path}{name}", os.O_RDWR) for name in (QUEUE_LOCK, WRITE_LOCK)]
    try:
        with suppress(BlockingIOError):
            for lock in locks:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
    finally:
        for lock in locks:
            os.close(lock)


@pytest.mark.requirement("S0.6", "S0.17", "S3.4", "S3.8", "P1")
def test_a_late_result_is_rejected_and_the_new_owners_result_stands(fleet: Fleet) -> None:
    """A coroutine returns a result after its stop; a thread stops, and its second run continues."""
    frozen = fleet.start(lease=LEASE)
    ended = fleet_app.late.using(max_attempts=2).enqueue(20.0).id
    continues = fleet_app.polite.using(max_attempts=2).enqueue(20.0).id
    for job_id in (ended, continues):
        assert fleet.started(job_id) == frozen.pid
    fleet.start(lease=LEASE).until_ready()

    freeze(fleet, frozen)
    for job_id in (ended, continues):
        assert fleet.started(job_id, times=2) != frozen.pid
        assert EventKind.LEASE_LOST in fleet.events(job_id)
    frozen.send(signal.SIGCONT)

    for job_id in (ended, continues):
        eventually(lambda job_id=job_id: _was_stopped(fleet, job_id, frozen.pid), LEASE)  # type: ignore[misc]
        lost = f"job {job_id}: its lease was lost"
        eventually(lambda lost=lost: lost in frozen.log, LEASE)  # type: ignore[misc]
    eventually(lambda: _renewed(fleet, continues))
    assert fleet.job(continues).attempt == 2
    job = fleet.succeeded(ended)
    assert job.report is not None
    assert job.report.result == "attempt 2"
    first, second = fleet.record.starts(ended)
    assert job.report.token == second.token > first.token
    fleet.every_second_start_has_a_cause()


def _was_stopped(fleet: Fleet, job_id: int, pid: int) -> bool:
    return any(line.pid == pid for line in fleet.record.lines(job_id, STOPPED))


def _renewed(fleet: Fleet, job_id: int) -> bool:
    """Twice at least, since it was leased."""
    lease = fleet.job(job_id).lease
    assert lease is not None
    return (lease.heartbeat_at - lease.leased_at).total_seconds() > LEASE / 2


@pytest.mark.requirement("S0.6", "S3.4", "S3.8", "P1", "P13")
def test_a_frozen_worker_writes_nothing_if_its_handlers_end_as_it_continues(
    fleet: Fleet,
) -> None:
    """All its handlers end at the moment it continues."""
    frozen = fleet.start("--concurrency", "20", lease=LEASE)
    ids = [fleet_app.late.using(max_attempts=2).enqueue(0.8).id for _ in range(20)]
    for job_id in ids:
        fleet.started(job_id)
    freeze(fleet, frozen)
    other = fleet.start("--concurrency", "20", lease=LEASE)
    for job_id in ids:
        fleet.started(job_id, times=2)
        fleet.succeeded(job_id)
    before = fleet.app._client.store.read(ids)
    frozen.send(signal.SIGCONT)
    assert frozen.drain() == 0
    assert fleet.app._client.store.read(ids) == before
    assert {line.pid for i in ids for line in fleet.record.starts(i)[1:]} == {other.pid}
    fleet.every_second_start_has_a_cause()
