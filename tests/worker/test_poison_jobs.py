"""Jobs that kill their worker, or the child process that they run in."""

from __future__ import annotations

import os
import signal

import pytest

from freehold.model.history import EventKind
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

LEASE = 1.0


@pytest.mark.requirement("S3.3", "P3", "P7", "S2.5")
@pytest.mark.either_store
def test_a_job_that_kills_its_worker_every_time_fails_and_the_others_run(fleet: Fleet) -> None:
    """Dead workers are replaced, as a manager does; here by the test."""
    poison = fleet_app.kills_its_worker.enqueue().id
    others = [fleet_app.sleeper.using(max_attempts=10).enqueue(0.05).id for _ in range(60)]
    fleet.start("--concurrency", "4", lease=LEASE)

    def all_done() -> bool:
        if not fleet.workers[-1].is_alive:
            fleet.start("--concurrency", "4", lease=LEASE)
        counts = fleet.app._client.store.counts()
        return counts.ready + counts.waiting + counts.leased == 0

    eventually(all_done)
    job = fleet.job(poison)
    assert (job.state, job.attempt, job.lost_attempts) == (State.FAILED, 3, 3)
    assert job.reason == "its worker was lost 3 times"
    assert fleet.events(poison) == [EventKind.LEASE_LOST, EventKind.LEASE_LOST, EventKind.FAILED]
    assert len(fleet.record.starts(poison)) == 3
    killed = [worker for worker in fleet.workers if not worker.is_alive]
    assert [worker.ended() for worker in killed] == [-signal.SIGKILL] * 3
    for job_id in others:
        fleet.succeeded(job_id)
    fleet.every_second_start_has_a_cause()


@pytest.mark.requirement("S2.5", "P7", "S3.3")
@pytest.mark.either_store
def test_a_child_that_dies_fails_only_its_own_attempt_with_the_cause(fleet: Fleet) -> None:
    worker = fleet.start("--concurrency", "4", lease=2.0)
    neighbour = fleet_app.sleeper.enqueue(3.0).id
    how = {
        "segfault": "its process died: signal SIGSEGV",
        "9": "its process died: signal SIGKILL (out of memory?)",
        "6": "its process died: signal SIGABRT",
        "35": "its process died: signal 35",  # a real-time signal, which has no name
        "exit": "its process died: exit code 3",
        "memory": "MemoryError: ",
    }
    task = fleet_app.dies.using(max_attempts=1)
    ids = {task.enqueue(cause).id: reason for cause, reason in how.items()}
    for job_id, reason in ids.items():
        job = fleet.until(job_id, State.FAILED)
        assert job.reason == f"attempt 1 of 1 failed: {reason}"
        assert job.report is not None
        assert job.report.error is not None
        assert job.lost_attempts == 0
    assert fleet.succeeded(fleet_app.apart.enqueue(0.0).id).attempt == 1
    assert fleet.succeeded(neighbour).attempt == 1
    assert worker.drain() == 0
    eventually(lambda: not worker.group())


@pytest.mark.requirement("S2.7", "P7")
@pytest.mark.either_store
def test_a_child_that_dies_is_retried_in_a_fresh_one(fleet: Fleet) -> None:
    fleet.start(lease=2.0)
    job = fleet.until(fleet_app.dies.using(max_attempts=2).enqueue("9").id, State.FAILED)
    assert job.attempt == 2
    first, second = fleet.record.starts(job.id)
    assert first.pid != second.pid


@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.either_store
def test_a_child_that_breaks_its_pipe_is_killed_and_replaced(fleet: Fleet, framed: bool) -> None:
    worker = fleet.start("--concurrency", "1", lease=2.0)
    job = fleet.until(
        fleet_app.writes_into_every_socket.enqueue("no message", framed).id, State.FAILED
    )
    assert "its process broke the pipe to its worker and was killed" in (job.reason or "")
    broken = fleet.record.starts(job.id)[0].pid
    following = fleet_app.apart.enqueue(0.0).id
    assert fleet.succeeded(following).attempt == 1
    assert fleet.record.starts(following)[0].pid != broken
    with pytest.raises(ProcessLookupError):
        os.kill(broken, 0)
    assert worker.drain() == 0


@pytest.mark.requirement("S3.4")
@pytest.mark.either_store
def test_a_child_does_not_outlive_a_killed_worker(fleet: Fleet) -> None:
    """No handler runs on without a lease."""
    worker = fleet.start(lease=LEASE)
    job_id = fleet_app.apart.enqueue(60.0).id
    fleet.started(job_id)
    worker.send(signal.SIGKILL)
    worker.ended()
    eventually(lambda: not worker.group(), LEASE)


@pytest.mark.requirement("S2.5", "S3.3")
@pytest.mark.either_store
def test_a_child_that_cannot_be_started_fails_the_attempt_and_holds_no_slot(fleet: Fleet) -> None:
    worker = fleet.start("--concurrency", "2", lease=5.0).until_ready()
    choking = fleet_app.chokes.enqueue(2.0).id
    fleet.started(choking)
    job_id = fleet_app.apart.using(max_attempts=1, delay=0.3).enqueue(0.0).id
    job = fleet.until(job_id, State.FAILED)
    assert job.reason is not None
    assert "OSError: [Errno 24]" in job.reason
    fleet.succeeded(choking)
    assert fleet.succeeded(fleet_app.apart.enqueue(0.0).id).attempt == 1
    assert worker.drain() == 0
