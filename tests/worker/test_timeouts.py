"""The timeout ends long attempts; the lease only shows that the worker is alive."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.model.history import EventKind
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually


@pytest.mark.requirement("S0.5", "S1.5", "S3.5", "S2.4")
@pytest.mark.either_store
def test_a_job_of_twelve_leases_lives(fleet: Fleet) -> None:
    lease = 0.5
    fleet.start(lease=lease)
    fleet.start(lease=lease)
    job_id = fleet_app.sleeper.enqueue(12 * lease).id
    fleet.started(job_id)
    seen = set()
    while (job := fleet.job(job_id)).state is not State.SUCCEEDED:
        if job.lease is not None:
            seen.add(job.lease.heartbeat_at)
        assert job.state in (State.QUEUED, State.ASSIGNED, State.RUNNING)
    # Renewed at a third of the lease: 36 times, if none is late.
    assert 18 <= len(seen) <= 45
    assert (job.attempt, job.lost_attempts) == (1, 0)
    assert fleet.record.steps(job_id) == ["start", "end"]


@pytest.mark.requirement("S3.5", "S3.3", "P7", "S3.8")
@pytest.mark.either_store
def test_a_job_over_its_timeout_ends_and_fails_its_attempt(fleet: Fleet) -> None:
    fleet.start().until_ready()
    tasks: list[fleet_app.Sleeps] = [fleet_app.sleeper, fleet_app.polite, fleet_app.apart]
    timeout = 3.0  # enough for a process to start on a busy machine
    for job_id in [t.using(timeout=timeout, max_attempts=1).enqueue(600.0).id for t in tasks]:
        job = fleet.until(job_id, State.FAILED)
        assert job.reason == "attempt 1 of 1 failed: it ran longer than its timeout of 3 s"
        assert job.report is not None
        assert job.report.error is not None
        assert job.report.error.type == "Timeout"
        assert job.report.leased_at is not None
        took = (job.report.finished_at - job.report.leased_at).total_seconds()
        assert timeout <= took
        assert (job.attempt, job.lost_attempts) == (1, 0)
        steps = fleet.record.steps(job_id)
        assert steps[0] == "start"
        assert "end" not in steps


@pytest.mark.requirement("S3.5", "S3.3", "S2.7")
@pytest.mark.either_store
def test_a_timeout_is_retried_like_any_failure(fleet: Fleet) -> None:
    fleet.start()
    job_id = fleet_app.late.using(timeout=0.5).enqueue(30.0).id
    job = fleet.succeeded(job_id)
    assert job.report is not None
    assert (job.attempt, job.report.result) == (2, "attempt 2")
    assert fleet.events(job_id) == [EventKind.RETRIED]
    # The result that the handler returned after its stop came too late.
    assert fleet.record.steps(job_id)[:3] == ["start", "stopped: timeout, held: True", "end"]


@pytest.mark.requirement("S3.5")
@pytest.mark.either_store
def test_a_hung_process_is_killed_and_its_slot_is_free_again(fleet: Fleet) -> None:
    worker = fleet.start("--concurrency", "1").until_ready()
    job_id = fleet_app.deaf_apart.using(timeout=3.0, max_attempts=1).enqueue(600.0).id
    child = fleet.started(job_id)
    next_id = fleet_app.quick.enqueue("next").id
    fleet.until(job_id, State.FAILED)
    fleet.succeeded(next_id)
    assert "ignores Stopped" in fleet.record.steps(job_id)
    eventually(lambda: not _is_alive(child))
    assert worker.drain() == 0


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
