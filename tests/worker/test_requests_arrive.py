"""Cancel and pause: at once where nobody runs the job, soon where somebody does."""

from __future__ import annotations

import signal

import pytest

from freehold import JobHandle
from freehold.model.history import EventKind
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

#: Neither a poll nor a renewal brings a request along while a test waits (see PATIENCE_SECONDS).
RARELY = {"FREEHOLD_WORKERS_REQUEST_POLL_SECONDS": "900"}
EVERY_SECOND = {"FREEHOLD_WORKERS_REQUEST_POLL_SECONDS": "1"}
LONG_LEASE = 3600.0


@pytest.mark.requirement("S4.5", "S4.6", "S0.17")
def test_a_running_job_hears_of_its_cancel_by_notification(postgres_fleet: Fleet) -> None:
    _cancel_each_kind(postgres_fleet, RARELY)


@pytest.mark.requirement("S4.5", "S4.6", "S0.17")
def test_a_running_job_hears_of_its_cancel_within_the_poll(fleet: Fleet) -> None:
    """What every store promises, whether or not it can notify."""
    _cancel_each_kind(fleet, EVERY_SECOND)


def _cancel_each_kind(fleet: Fleet, environment: dict[str, str]) -> None:
    """A coroutine, a thread and a process."""
    fleet.start(lease=LONG_LEASE, environment=environment)
    tasks: list[fleet_app.Sleeps] = [fleet_app.sleeper, fleet_app.polite, fleet_app.apart]
    handles = [task.enqueue(600.0) for task in tasks]
    for handle in handles:
        fleet.started(handle.id)
    for handle in handles:
        assert handle.cancel("enough").what == "requested"
        job = fleet.until(handle.id, State.CANCELED)
        if handle is not handles[2]:  # a process is ended by a signal, and says nothing
            assert fleet.record.lines(handle.id, "stopped: canceled, held: True")
        assert job.attempt == 0  # stopped on request: not charged
        assert fleet.events(handle.id) == [EventKind.CANCEL_REQUESTED, EventKind.CANCELED]
        assert "end" not in fleet.record.words(handle.id)


@pytest.mark.requirement("S4.5", "S4.6")
def test_a_running_job_is_paused_and_one_in_a_lane_pauses_when_canceled(fleet: Fleet) -> None:
    fleet.start(lease=LONG_LEASE, environment=EVERY_SECOND)
    plain = fleet_app.sleeper.enqueue(600.0).id
    lane = fleet_app.sleeper.using(target="account-1").enqueue(600.0).id
    next_in_lane = fleet_app.quick.using(target="account-1").enqueue().id
    for job_id in (plain, lane):
        fleet.started(job_id)
    act = fleet.app.operate.act
    assert [a.what for a in act(OperatorVerb.PAUSE, [plain], "ann", "wait")] == ["requested"]
    assert [a.what for a in act(OperatorVerb.CANCEL, [lane], "ann", "wrong")] == ["requested"]
    paused = fleet.until(plain, State.PAUSED)
    assert (paused.attempt, paused.lease, paused.request) == (0, None, None)
    held = fleet.until(lane, State.PAUSED)
    assert (held.attempt, held.reason) == (0, "wrong")  # as whoever asked said
    assert fleet.state(next_in_lane) is State.QUEUED
    assert [a.what for a in act(OperatorVerb.CANCEL, [lane], "ann", None)] == ["done"]
    fleet.succeeded(next_in_lane)
    assert [a.what for a in act(OperatorVerb.RESUME, [plain], "ann", None)] == ["done"]
    fleet.started(plain, times=2)


@pytest.mark.requirement("S4.5")
def test_without_a_notification_a_request_is_found_by_looking(postgres_fleet: Fleet) -> None:
    """Written behind the store's back: nobody is told."""
    fleet = postgres_fleet
    fleet.start(lease=LONG_LEASE, environment=EVERY_SECOND)
    job_id = fleet_app.sleeper.enqueue(600.0).id
    fleet.started(job_id)
    fleet.sql(f"update {{s}}job set request = 'c' where id = {job_id}")
    fleet.until(job_id, State.CANCELED)


@pytest.mark.requirement("S4.5", "S4.6")
def test_requests_for_jobs_that_nobody_has_leased_act_at_once(fleet: Fleet) -> None:
    queued = [fleet_app.quick.enqueue().id for _ in range(2)]
    later = [fleet_app.quick.using(delay=0.5).enqueue().id for _ in range(2)]
    act = fleet.app.operate.act
    canceled, paused = [queued[0], later[0]], [queued[1], later[1]]
    assert {a.what for a in act(OperatorVerb.CANCEL, canceled, "ann", None)} == {"done"}
    assert {a.what for a in act(OperatorVerb.PAUSE, paused, "ann", None)} == {"done"}
    sentinel = fleet_app.quick.using(delay=0.8).enqueue().id
    fleet.start()
    fleet.succeeded(sentinel)
    assert {fleet.state(job_id) for job_id in canceled} == {State.CANCELED}
    assert {fleet.state(job_id) for job_id in paused} == {State.PAUSED}
    assert not [line for i in canceled + paused for line in fleet.record.starts(i)]


@pytest.mark.requirement("P2", "S4.6")
def test_a_request_to_a_worker_that_is_gone_is_obeyed_at_recovery(fleet: Fleet) -> None:
    worker = fleet.start(lease=1.0)
    handles: list[JobHandle] = [fleet_app.sleeper.enqueue(60.0) for _ in range(2)]
    for handle in handles:
        fleet.started(handle.id)
    worker.send(signal.SIGKILL)
    worker.ended()
    assert handles[0].cancel().what == "requested"
    assert fleet.app.operate.act(OperatorVerb.PAUSE, [handles[1].id], "ann")[0].what == "requested"
    fleet.start(lease=1.0)
    eventually(lambda: fleet.nothing_leased())
    jobs = [fleet.job(handle.id) for handle in handles]
    assert [job.state for job in jobs] == [State.CANCELED, State.PAUSED]
    # The attempt had gone wrong before anybody obeyed: it counts.
    assert [(job.attempt, job.lost) for job in jobs] == [(1, 1), (1, 1)]
    assert all(len(fleet.record.starts(handle.id)) == 1 for handle in handles)
