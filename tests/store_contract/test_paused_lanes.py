"""A lane that a person has paused: what runs goes on, and the next one waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import State
from tests.stores import StoreUnderTest


def ids(store: StoreUnderTest) -> list[int]:
    return [attempt.job_id for attempt in store.claim()]


def pause(store: StoreUnderTest, seconds: float | None = None) -> None:
    until = None if seconds is None else store.now() + timedelta(seconds=seconds)
    store.store.pause_lane("lane", "ann", "maintenance", until)


@pytest.mark.requirement("S4.3")
def test_nothing_of_a_paused_lane_starts_and_others_pass(store: StoreUnderTest) -> None:
    pause(store)
    [store.add(target="lane") for _ in range(5)]
    plain, other = store.add(), store.add(target="other")
    assert ids(store) == [plain, other]
    assert ids(store) == []


def test_the_running_job_of_a_paused_lane_continues_and_the_next_waits(
    store: StoreUnderTest,
) -> None:
    first, second = store.add(target="lane"), store.add(target="lane")
    attempt = store.claim_one()
    assert attempt.job_id == first
    pause(store)
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert ids(store) == []
    assert store.store.resume_lane("lane")
    assert ids(store) == [second]


def test_resume_goes_on_in_order(store: StoreUnderTest) -> None:
    jobs = [store.add(target="lane") for _ in range(3)]
    pause(store)
    assert ids(store) == []
    late = store.add(target="lane", priority=100)
    assert store.store.resume_lane("lane")
    for job_id in [*jobs, late]:
        attempt = store.claim_one()
        assert attempt.job_id == job_id
        assert store.end(attempt, OutcomeKind.SUCCESS)


def test_resuming_a_lane_that_was_not_paused_returns_false(store: StoreUnderTest) -> None:
    store.add(target="lane")
    assert store.store.resume_lane("lane") is False
    assert len(ids(store)) == 1


def test_a_pause_ends_at_its_time(store: StoreUnderTest) -> None:
    job_id = store.add(target="lane")
    pause(store, 60.0)
    assert ids(store) == []
    assert store.store.wake_lanes(10) == 0
    store.advance(60.0)
    assert store.store.wake_lanes(10) == 1
    assert ids(store) == [job_id]
    assert store.store.lanes("", 10)[0].pause is None


def test_a_stopped_head_can_be_canceled_and_the_next_stops_too(store: StoreUnderTest) -> None:
    first, second = store.add(target="lane"), store.add(target="lane")
    pause(store)
    assert ids(store) == []
    store.store.operate(OperatorVerb.CANCEL, [first], "ann", None)
    assert ids(store) == []
    store.store.resume_lane("lane")
    assert ids(store) == [second]


def test_a_stopped_head_that_is_paused_itself_blocks_after_the_resume(
    store: StoreUnderTest,
) -> None:
    first, second = store.add(target="lane"), store.add(target="lane")
    pause(store)
    assert ids(store) == []
    store.store.operate(OperatorVerb.PAUSE, [first], "ann", None)
    store.store.resume_lane("lane")
    assert ids(store) == []
    store.store.operate(OperatorVerb.RESUME, [first], "ann", None)
    attempt = store.claim_one()
    assert attempt.job_id == first
    store.end(attempt, OutcomeKind.SUCCESS)
    assert ids(store) == [second]


def test_lanes_show_depth_head_and_why(store: StoreUnderTest) -> None:
    running, _ = store.add(target="a"), store.add(target="a")
    failing, _, _ = (store.add(target="b", max_attempts=1) for _ in range(3))
    waiting = store.add(target="c")
    store.store.pause_lane("c", "ann", "maintenance", None)
    store.store.pause_lane("d", "ann", None, None)
    for attempt in store.claim():
        if attempt.job_id == failing:
            store.end(attempt, OutcomeKind.FAIL)
    a, b, c, d = store.store.lanes("", 10)
    assert (a.target, a.depth, a.head, a.head_state, a.blocked) == (
        "a",
        2,
        running,
        State.ASSIGNED,
        False,
    )
    assert (b.target, b.depth, b.head, b.head_state, b.blocked) == (
        "b",
        3,
        failing,
        State.FAILED,
        True,
    )
    assert (c.target, c.depth, c.head) == ("c", 1, waiting)
    assert c.pause is not None
    assert (c.pause.by, c.pause.reason) == ("ann", "maintenance")
    assert (d.target, d.depth, d.head) == ("d", 0, None)
    assert d.pause is not None
    assert d.pause.by == "ann"
    assert [lane.target for lane in store.store.lanes("b", 1)] == ["c"]


def test_a_list_counts_the_jobs_of_each_lane_up_to_its_bound(store: StoreUnderTest) -> None:
    for _ in range(4):
        store.add(target="deep")
    store.add(target="short")
    store.claim(count=1)
    deep, short = store.store.lanes("", 10, bound=3)
    assert (deep.depth, deep.bound, short.depth, short.bound) == (3, 3, 1, 3)


def test_one_lane_is_read_as_the_list_shows_it(store: StoreUnderTest) -> None:
    for target in ("a/b", "a/b", "c"):
        store.add(target=target)
    store.claim(count=1)
    store.store.pause_lane("d", "ann", None, None)
    listed = store.store.lanes("", 10)
    assert [lane.target for lane in listed] == ["a/b", "c", "d"]
    assert [store.store.lane(each.target) for each in listed] == listed
    assert store.store.lane("none") is None
