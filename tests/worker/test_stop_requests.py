"""Cancel and pause: at once if the job is not running, soon if it is."""

from __future__ import annotations

import signal

import pytest

from freehold import JobHandle
from freehold.model.history import EventKind
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

#: Neither a poll nor a renewal reads a request while a test waits (see TIMEOUT_SECONDS).
RARELY = {"FREEHOLD_WORKERS_REQUEST_POLL_SECONDS": "900"}
EVERY_SECOND = {"FREEHOLD_WORKERS_REQUEST_POLL_SECONDS": "1"}
LONG_LEASE = 3600.0


@pytest.mark.requirement("S4.5", "S4.6", "S0.17")
def test_a_running_job_is_canceled_by_a_notification(postgres_fleet: Fleet) -> None:
    _cancel_each_kind(postgres_fleet, RARELY)


@pytest.mark.requirement("S4.5", "S4.6", "S0.17")
@pytest.mark.either_store
def test_a_running_job_is_canceled_by_a_poll(fleet: Fleet) -> None:
    """Every store promises this, whether or not it has notifications."""
    _cancel_each_kind(fleet, EVERY_SECOND)


def _cancel_each_kind(fleet: Fleet, environment: dict[str, str]) -> None:
    """A coroutine, a thread and a process."""
    fleet.start(lease=LONG_LEASE, environment=environment)
    tasks: list[fleet_app.Sleeps] = [fleet_app.sleeper, fleet_app.polite, fleet_app.apart]
    handles = [task.enqueue(600.0) for task in tasks]
    for handle in handles:
        fleet.started(handle.id)
    for handle in handles:
        assert handle.cancel("enough").status == "requested"
        job = fleet.until(handle.id, State.CANCELED)
        if handle is not handles[2]:  # a process is ended by a signal, and records nothing
            assert fleet.record.lines(handle.id, "stopped: canceled, held: True")
        assert job.attempt == 1
        assert fleet.events(handle.id) == [EventKind.CANCEL_REQUESTED, EventKind.CANCELED]
        assert "end" not in fleet.record.steps(handle.id)


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.either_store
def test_a_running_job_is_paused_and_one_in_a_lane_pauses_when_canceled(fleet: Fleet) -> None:
    fleet.start(lease=LONG_LEASE, environment=EVERY_SECOND)
    plain = fleet_app.sleeper.enqueue(600.0).id
    lane = fleet_app.sleeper.using(target="account-1").enqueue(600.0).id
    next_in_lane = fleet_app.quick.using(target="account-1").enqueue().id
    for job_id in (plain, lane):
        fleet.started(job_id)
    operator = fleet.app.operator
    assert [a.status for a in operator.pause(plain, by="ann", reason="wait")] == ["requested"]
    assert [a.status for a in operator.cancel(lane, by="ann", reason="wrong")] == ["requested"]
    paused = fleet.until(plain, State.PAUSED)
    assert (paused.attempt, paused.lease, paused.stop_request) == (0, None, None)
    lane_job = fleet.until(lane, State.PAUSED)
    assert lane_job.attempt == 0  # stopped on request: not charged
    assert lane_job.reason == "Job was interrupted by user: canceled by ann: wrong"
    assert fleet.state(next_in_lane) is State.QUEUED
    assert [a.status for a in operator.cancel(lane, by="ann")] == ["done"]
    fleet.succeeded(next_in_lane)
    assert [a.status for a in operator.resume(plain, by="ann")] == ["done"]
    fleet.started(plain, times=2)


@pytest.mark.requirement("S4.5")
def test_a_request_without_a_notification_is_found_by_polling(postgres_fleet: Fleet) -> None:
    """Written past the store, so no notification is sent."""
    fleet = postgres_fleet
    fleet.start(lease=LONG_LEASE, environment=EVERY_SECOND)
    job_id = fleet_app.sleeper.enqueue(600.0).id
    fleet.started(job_id)
    fleet.sql(f"update {{s}}job set stop_request = 'cancel' where id = {job_id}")
    fleet.until(job_id, State.CANCELED)


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.either_store
def test_requests_for_unleased_jobs_act_at_once(fleet: Fleet) -> None:
    queued = [fleet_app.quick.enqueue().id for _ in range(2)]
    later = [fleet_app.quick.using(delay=0.5).enqueue().id for _ in range(2)]
    operator = fleet.app.operator
    canceled, paused = [queued[0], later[0]], [queued[1], later[1]]
    assert {a.status for a in operator.cancel(*canceled, by="ann")} == {"done"}
    assert {a.status for a in operator.pause(*paused, by="ann")} == {"done"}
    sentinel = fleet_app.quick.using(delay=0.8).enqueue().id
    fleet.start()
    fleet.succeeded(sentinel)
    assert {fleet.state(job_id) for job_id in canceled} == {State.CANCELED}
    assert {fleet.state(job_id) for job_id in paused} == {State.PAUSED}
    assert not [line for i in canceled + paused for line in fleet.record.starts(i)]


@pytest.mark.requirement("P2", "S4.6")
@pytest.mark.either_store
def test_a_request_to_a_lost_worker_is_applied_at_recovery(fleet: Fleet) -> None:
    worker = fleet.start(lease=1.0)
    handles: list[JobHandle] = [fleet_app.sleeper.enqueue(60.0) for _ in range(2)]
    for handle in handles:
        fleet.started(handle.id)
    worker.send(signal.SIGKILL)
    worker.ended()
    assert handles[0].cancel().status == "requested"
    assert fleet.app.operator.pause(handles[1].id, by="ann")[0].status == "requested"
    fleet.start(lease=1.0)
    eventually(lambda: fleet.nothing_leased())
    jobs = [fleet.job(handle.id) for handle in handles]
    assert [job.state for job in jobs] == [State.CANCELED, State.PAUSED]
    # The attempt had failed before the request was applied: it counts.
    assert [(job.attempt, job.lost_attempts) for job in jobs] == [(1, 1), (1, 1)]
    assert all(len(fleet.record.starts(handle.id)) == 1 for handle in handles)
