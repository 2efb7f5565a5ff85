"""The demo's check finds what it must find: each kind of wrong is planted once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from freehold.lab.demo.check import Check, check
from freehold.lab.demo.handler_log import HandlerMoment, HandlerRecord
from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.simulated_kind import SimulatedKind
from freehold.model.state import Stage, State
from tests.model.building import T0, a_job

KINDS = {"quick": SimulatedKind("quick", 1, 1), "broken": SimulatedKind("broken", 1, 1, "fail")}
LANE = {1: "a", 2: "a"}


def ended(job_id: int, state: State = State.SUCCEEDED, task: str = "demo.quick") -> Job:
    return a_job(None, id=job_id, state=state, task=task)


def said(job: int, *words: HandlerMoment, attempt: int = 1, pid: int = 10) -> list[HandlerRecord]:
    return [HandlerRecord(job, attempt, pid, word) for word in words]


def an_event(job_id: int, kind: EventKind) -> Event:
    return Event(1, job_id, T0, kind, State.QUEUED, 1, None, None, None, 1, T0, None, None)


def judge(jobs: Sequence[Job], lines: list[HandlerRecord], *events: Event) -> Check:
    by_job = {event.job_id: [event] for event in events}
    return check([1, 2], LANE, KINDS, {job.id: job for job in jobs}, by_job, lines)


WELL = said(1, "started", "succeeded") + said(2, "started", "succeeded")


def test_all_is_well() -> None:
    found = judge([ended(1), ended(2)], WELL)
    assert found.good
    assert (found.jobs, found.attempts, found.lanes, found.lost) == (2, 2, 1, [])


def test_a_job_that_is_gone_is_lost() -> None:
    found = judge([ended(1)], WELL)
    assert (found.good, found.lost) == (False, [2])


@pytest.mark.parametrize("stage", [Stage.READY, Stage.HELD, Stage.PAUSED])
def test_a_job_that_has_not_ended_is_lost(stage: Stage) -> None:
    found = judge([ended(1), a_job(stage, id=2, task="demo.quick")], WELL)
    assert (found.good, found.lost) == (False, [2])


def test_an_end_that_its_kind_does_not_have_is_wrong() -> None:
    lines = said(1, "started", "succeeded") + said(2, "started", "succeeded")
    found = judge([ended(1), ended(2, State.SUCCEEDED, "demo.broken")], lines)
    assert (found.good, found.wrong) == (False, [2])


def test_an_end_that_no_handler_has_seen_is_found() -> None:
    found = judge([ended(1), ended(2)], said(1, "started", "succeeded") + said(2, "started"))
    assert (found.good, found.unheard) == (False, [2])


def test_a_second_start_needs_a_cause() -> None:
    twice = WELL + said(2, "started", "succeeded", attempt=2)
    found = judge([ended(1), ended(2)], twice)
    assert (found.good, found.unexplained) == (False, [2])
    found = judge([ended(1), ended(2)], twice, an_event(2, EventKind.LEASE_LOST))
    assert (found.good, found.recovered) == (True, 1)


def test_a_lane_that_is_overtaken_is_found() -> None:
    lines = said(2, "started", "succeeded") + said(1, "started", "succeeded")
    found = judge([ended(1), ended(2)], lines)
    assert (found.good, found.disordered_lanes) == (False, ["a"])


def test_two_of_a_lane_at_a_time_are_found() -> None:
    lines = said(1, "started") + said(2, "started", "succeeded") + said(1, "succeeded")
    found = judge([ended(1), ended(2)], lines)
    assert (found.good, found.disordered_lanes) == (False, ["a"])


def test_a_lane_goes_on_after_its_worker_was_killed() -> None:
    """The dead one has said nothing more; the same job starts again, and then the next."""
    lines = said(1, "started") + said(1, "started", "succeeded", attempt=2, pid=11)
    lines += said(2, "started", "succeeded")
    assert judge([ended(1), ended(2)], lines, an_event(1, EventKind.LEASE_LOST)).good
