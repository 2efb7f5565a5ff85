"""A worker that is killed with SIGKILL loses no job."""

from __future__ import annotations

import signal

import pytest

from freehold.model.history import EventKind
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

LEASE = 1.0


@pytest.mark.requirement("S1.5", "S2.3", "S2.4", "S2.5", "S2.7", "S3.3", "S3.4", "P7")
def test_the_job_of_a_killed_worker_is_run_again_by_another_worker(fleet: Fleet) -> None:
    first = fleet.start(lease=LEASE)
    job_id = fleet_app.sleeper.enqueue(30.0).id
    assert fleet.started(job_id) == first.pid
    lease = fleet.until(job_id, State.RUNNING).lease
    assert lease is not None
    second = fleet.start(lease=LEASE).until_ready()

    first.send(signal.SIGKILL)
    eventually(lambda: EventKind.LEASE_LOST in fleet.events(job_id))
    assert first.ended() == -signal.SIGKILL
    assert fleet.started(job_id, times=2) == second.pid

    # Not before its lease had ended, and with its backoff: 0.2 s after the first attempt.
    lost = next(e for e in fleet.app._client.store.events(job_id) if e.kind is EventKind.LEASE_LOST)
    assert lost.due_at is not None
    assert 0.19 < (lost.due_at - lost.at).total_seconds() < 0.21
    assert lost.at >= lease.expires_at
    _check_history(fleet, job_id, lease.owner)


def _check_history(fleet: Fleet, job_id: int, lost_owner: str) -> None:
    job = fleet.job(job_id)
    assert (job.attempt, job.lost_attempts) == (2, 1)
    first, second = fleet.record.starts(job_id)
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.token > first.token
    timeline = fleet.app.operator.show(job_id).timeline
    lost = next(entry for entry in timeline if entry.kind is EventKind.LEASE_LOST)
    assert lost.reason == "its worker was lost"
    assert (lost.by, lost.attempt, lost.state) == (lost_owner, 1, State.QUEUED)
    leased = [entry.by for entry in timeline if entry.kind is EventKind.LEASED]
    assert leased[0] == lost_owner != leased[1]
    assert f"job {job_id} of {fleet_app.sleeper.name}: worker {lost_owner} was lost" in fleet.log


@pytest.mark.requirement("S3.2", "S2.5")
def test_a_starting_worker_recovers_all_leases_that_expired_before(
    fleet: Fleet,
) -> None:
    first = fleet.start("--concurrency", "50", lease=LEASE)
    ids = [fleet_app.sleeper.using(max_attempts=1).enqueue(30.0).id for _ in range(40)]
    for job_id in ids:
        fleet.started(job_id)
    first.send(signal.SIGKILL)
    first.ended()
    expired = eventually(lambda: _expired(fleet, ids))
    assert expired == 40
    fleet.start(lease=LEASE)
    for job_id in ids:
        job = fleet.until(job_id, State.FAILED)
        assert job.reason == "its worker was lost 1 time"
        assert job.lease is None
    assert fleet.nothing_leased()


def _expired(fleet: Fleet, ids: list[int]) -> int:
    now = fleet.app.operator.now()
    jobs = fleet.app._client.store.read(ids).values()
    late = sum(job.lease is not None and job.lease.expires_at < now for job in jobs)
    return late if late == len(ids) else 0


@pytest.mark.requirement("S4.9")
def test_a_lost_worker_fails_the_job_if_its_policy_is_fail(fleet: Fleet) -> None:
    job_id = fleet_app.careful.enqueue().id
    fleet.start(lease=LEASE).ended()
    fleet.start(lease=LEASE)
    job = fleet.until(job_id, State.FAILED)
    assert (job.reason, job.attempt, job.max_attempts) == ("its worker was lost 1 time", 1, 3)
    assert len(fleet.record.starts(job_id)) == 1


@pytest.mark.requirement("S3.4", "S2.5", "P7")
def test_workers_killed_repeatedly_under_load_lose_no_job(fleet: Fleet) -> None:
    """Three kills; every job succeeds, and every second start has its cause in the history."""
    ids = [fleet_app.sleeper.using(max_attempts=20).enqueue(0.05).id for _ in range(90)]
    fleet.start("--concurrency", "4", lease=LEASE)
    for kill in range(3):
        done = 15 * (kill + 1)
        eventually(lambda done=done: len(fleet.record.lines(what="end")) >= done)  # type: ignore[misc]
        fleet.start("--concurrency", "4", lease=LEASE)
        victim = fleet.workers[kill]
        victim.send(signal.SIGKILL)
        victim.ended()
    for job_id in ids:
        fleet.succeeded(job_id)
    fleet.every_second_start_has_a_cause()
    assert fleet.nothing_leased()
