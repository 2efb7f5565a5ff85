"""Handlers that block the event loop, a thread or a process for three leases."""

from __future__ import annotations

import re

import pytest

from tests.worker import fleet_app
from tests.worker.fleet import Fleet

LEASE = 1.0


@pytest.mark.requirement("S0.5", "S1.5", "S3.5", "S3.8", "S1.3")
@pytest.mark.either_store
def test_a_handler_that_blocks_the_loop_for_three_leases_runs_once_with_one_warning(
    fleet: Fleet,
) -> None:
    """Another worker is running, and would claim the job if its lease ran out."""
    fleet.start(lease=LEASE)
    fleet.start(lease=LEASE)
    job_id = fleet_app.blocker.enqueue(3.0 * LEASE).id
    job = fleet.succeeded(job_id)
    assert (job.attempt, job.lost_attempts) == (1, 0)
    assert fleet.record.steps(job_id) == ["start", "end"]
    fleet.workers[0].drain()
    fleet.workers[1].drain()
    name = re.escape(fleet_app.blocker.name)
    warning = (
        rf"warning freehold: task {name} blocked the event loop for (\d\.\d) s \(job {job_id}\)"
    )
    logged = re.findall(warning, fleet.log)
    assert len(logged) == 1
    assert 2.5 < float(logged[0]) < 5.0
    assert fleet.log.count("blocked the event loop") == 1


@pytest.mark.requirement("S0.5", "S1.5", "S3.5", "S1.3")
@pytest.mark.either_store
def test_a_thread_and_a_process_of_three_leases_run_once_and_without_a_warning(
    fleet: Fleet,
) -> None:
    fleet.start(lease=LEASE)
    fleet.start(lease=LEASE)
    tasks = (fleet_app.threaded, fleet_app.apart)
    ids = [task.enqueue(3.0 * LEASE).id for task in tasks]
    for job_id in ids:
        job = fleet.succeeded(job_id)
        assert (job.attempt, job.lost_attempts) == (1, 0)
        assert fleet.record.steps(job_id) == ["start", "end"]
    assert "blocked" not in fleet.log
