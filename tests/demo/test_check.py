"""The demo's check finds every kind of error."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from freehold.lab.demo.check import Check, check
from freehold.lab.demo.handler_log import HandlerEvent, HandlerRecord
from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.simulated_kind import SimulatedKind
from freehold.model.state import Stage, State
from tests.model.builders import T0, a_job

KINDS = {"quick": SimulatedKind("quick", 1, 1), "broken": SimulatedKind("broken", 1, 1, "fail")}
LANE = {1: "a", 2: "a"}


def ended(job_id: int, state: State = State.SUCCEEDED, task: str = "demo.quick") -> Job:
    return a_job(None, id=job_id, state=state, task=task)


def recorded(
    job: int, *events: HandlerEvent, attempt: int = 1, pid: int = 10
) -> list[HandlerRecord]:
    return [HandlerRecord(job, attempt, pid, event) for event in events]


def an_event(job_id: int, kind: EventKind) -> Event:
    return Event(1, job_id, T0, kind, State.QUEUED, 1, None, None, None, 1, T0, None, None)


def judge(jobs: Sequence[Job], records: list[HandlerRecord], *events: Event) -> Check:
    by_job = {event.job_id: [event] for event in events}
    return check([1, 2], LANE, KINDS, {job.id: job for job in jobs}, by_job, records)


CORRECT = recorded(1, "started", "succeeded") + recorded(2, "started", "succeeded")


def test_a_correct_run_is_good() -> None:
    found = judge([ended(1), ended(2)], CORRECT)
    assert found.good
    assert (found.jobs, found.attempts, found.lanes, found.lost) == (2, 2, 1, [])


def test_a_job_that_is_gone_is_lost() -> None:
    found = judge([ended(1)], CORRECT)
    assert (found.good, found.lost) == (False, [2])


@pytest.mark.parametrize("stage", [Stage.READY, Stage.LEASED, Stage.PAUSED])
def test_a_job_that_has_not_ended_is_lost(stage: Stage) -> None:
    found = judge([ended(1), a_job(stage, id=2, task="demo.quick")], CORRECT)
    assert (found.good, found.lost) == (False, [2])


def test_a_final_state_that_does_not_fit_the_kind_is_found() -> None:
    records = recorded(1, "started", "succeeded") + recorded(2, "started", "succeeded")
    found = judge([ended(1), ended(2, State.SUCCEEDED, "demo.broken")], records)
    assert (found.good, found.wrong) == (False, [2])


def test_an_end_without_a_record_of_the_handler_is_found() -> None:
    found = judge(
        [ended(1), ended(2)], recorded(1, "started", "succeeded") + recorded(2, "started")
    )
    assert (found.good, found.unrecorded) == (False, [2])


def test_a_second_start_needs_a_cause() -> None:
    twice = CORRECT + recorded(2, "started", "succeeded", attempt=2)
    found = judge([ended(1), ended(2)], twice)
    assert (found.good, found.unexplained) == (False, [2])
    found = judge([ended(1), ended(2)], twice, an_event(2, EventKind.LEASE_LOST))
    assert (found.good, found.recovered) == (True, 1)


def test_a_job_that_overtakes_in_its_lane_is_found() -> None:
    records = recorded(2, "started", "succeeded") + recorded(1, "started", "succeeded")
    found = judge([ended(1), ended(2)], records)
    assert (found.good, found.disordered_lanes) == (False, ["a"])


def test_two_jobs_of_a_lane_at_a_time_are_found() -> None:
    records = (
        recorded(1, "started") + recorded(2, "started", "succeeded") + recorded(1, "succeeded")
    )
    found = judge([ended(1), ended(2)], records)
    assert (found.good, found.disordered_lanes) == (False, ["a"])


def test_a_lane_continues_after_its_worker_was_killed() -> None:
    """The killed worker records no end; the same job starts again, and then the next."""
    records = recorded(1, "started") + recorded(1, "started", "succeeded", attempt=2, pid=11)
    records += recorded(2, "started", "succeeded")
    assert judge([ended(1), ended(2)], records, an_event(1, EventKind.LEASE_LOST)).good
