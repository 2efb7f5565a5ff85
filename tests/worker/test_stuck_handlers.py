"""Handlers that ignore their stop are logged, and their process ends to be replaced."""

from __future__ import annotations

import signal

import pytest

from freehold.exit_codes import EXIT_RECYCLE
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet


@pytest.mark.requirement("S3.5", "S4.6", "S4.11", "P13")
@pytest.mark.either_store
def test_threads_that_ignore_timeout_and_cancel_are_stuck_and_their_process_recycled(
    fleet: Fleet,
) -> None:
    """Their slots are given up; the other jobs of the process end normally."""
    worker = fleet.start("--shutdown-grace-seconds", "30", lease=2.0)
    late = fleet_app.threaded.using(timeout=0.5, max_attempts=1).enqueue(600.0)
    canceled = fleet_app.threaded.enqueue(600.0)
    peaceful = fleet_app.sleeper.enqueue(7.0)
    for each in (late, canceled, peaceful):
        fleet.started(each.id)
    assert canceled.cancel().status == "requested"
    job = fleet.until(late.id, State.FAILED)
    assert job.reason == "attempt 1 of 1 failed: it ran longer than its timeout of 0.5 s"
    fleet.until(canceled.id, State.CANCELED)
    name = fleet_app.threaded.name
    assert f"error   freehold: job {late.id} of {name} did not stop in 5 s (timeout)" in worker.log
    assert (
        f"error   freehold: job {canceled.id} of {name} did not stop in 5 s (canceled)"
        in worker.log
    )
    assert worker.ended() == EXIT_RECYCLE
    assert fleet.record.steps(peaceful.id) == ["start", "end"]
    assert fleet.state(peaceful.id) is State.SUCCEEDED
    assert fleet.nothing_leased()
    assert not worker.group()


@pytest.mark.requirement("S4.11", "P13")
@pytest.mark.either_store
def test_handlers_that_ignore_a_drain_are_released_and_the_process_ends(fleet: Fleet) -> None:
    worker = fleet.start("--shutdown-grace-seconds", "0", lease=2.0)
    ids = {
        fleet_app.threaded.enqueue(600.0).id: fleet_app.threaded.name,
        fleet_app.deaf.enqueue().id: fleet_app.deaf.name,
    }
    for job_id in ids:
        fleet.started(job_id)
    worker.send(signal.SIGTERM)
    assert worker.ended() == EXIT_RECYCLE
    for job_id, name in ids.items():
        assert f"job {job_id} of {name} did not stop in 5 s (drain)" in worker.log
        job = fleet.job(job_id)
        assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert fleet.nothing_leased()


@pytest.mark.requirement("S4.11", "P13")
def test_a_thread_with_a_transaction_open_does_not_keep_its_process_from_ending(
    fleet: Fleet,
) -> None:
    """On SQLite it holds the write lock: every write of the worker waits for it."""
    worker = fleet.start("--shutdown-grace-seconds", "0", lease=2.0)
    fleet.started(fleet_app.transacts.enqueue(600.0).id)
    worker.send(signal.SIGTERM)
    assert worker.ended() == EXIT_RECYCLE


@pytest.mark.requirement("S4.11")
@pytest.mark.either_store
def test_a_thread_that_a_coroutine_waits_for_does_not_keep_its_process_from_ending(
    fleet: Fleet,
) -> None:
    worker = fleet.start("--shutdown-grace-seconds", "0")
    job_id = fleet_app.beside.enqueue(600.0).id
    fleet.started(job_id)
    assert worker.drain() == 0
    assert "1 thread of asyncio.to_thread did not end" in worker.log
    assert fleet.state(job_id) is State.QUEUED
