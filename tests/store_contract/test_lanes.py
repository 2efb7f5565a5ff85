"""Lanes: one at a time, in order, and nothing slips past one that stopped."""

from __future__ import annotations

import pytest

from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from tests.stores import LEASE_SECONDS, StoreUnderTest

STOPS = {"paused": OutcomeKind.PAUSE, "failed": OutcomeKind.FAIL}


def claimed(store: StoreUnderTest, queue: str = "default") -> list[int]:
    return [attempt.job_id for attempt in store.claim(queue=queue)]


def lane(store: StoreUnderTest, count: int, *, together: bool = False) -> list[int]:
    if together:
        answers = store.store.enqueue([NewJob(task="t", target="lane")] * count)
        return [answer.id for answer in answers]
    return [store.add(target="lane") for _ in range(count)]


@pytest.mark.requirement("S4.3")
@pytest.mark.parametrize("together", [True, False], ids=["one call", "one by one"])
def test_a_lane_runs_one_at_a_time_oldest_first(store: StoreUnderTest, together: bool) -> None:
    jobs = lane(store, 4, together=together)
    for job_id in jobs:
        attempt = store.claim_one()
        assert attempt.job_id == job_id
        assert claimed(store) == []
        assert store.end(attempt, OutcomeKind.SUCCESS)
    assert claimed(store) == []


@pytest.mark.requirement("S4.3")
def test_priority_does_not_overtake_within_a_lane(store: StoreUnderTest) -> None:
    first = store.add(target="lane", priority=0)
    second = store.add(target="lane", priority=100)
    attempt = store.claim_one()
    assert attempt.job_id == first
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.3", "S0.14")
def test_priority_ranks_the_heads_of_lanes(store: StoreUnderTest) -> None:
    plain = store.add(priority=5)
    low = store.add(target="low", priority=1)
    high = store.add(target="high", priority=9)
    assert [store.claim_one().job_id for _ in range(3)] == [high, plain, low]


@pytest.mark.requirement("S4.3")
def test_a_held_lane_does_not_stand_in_the_way_of_others(store: StoreUnderTest) -> None:
    head, *_ = lane(store, 20)
    plain = store.add()
    assert store.claim_one().job_id == head
    assert store.claim_one().job_id == plain


@pytest.mark.requirement("P6")
def test_a_lane_spans_queues(store: StoreUnderTest) -> None:
    first = store.add(target="lane", queue="a")
    second = store.add(target="lane", queue="b")
    assert claimed(store, "b") == []
    attempt = store.claim_one(queue="a")
    assert attempt.job_id == first
    assert claimed(store, "b") == []
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert claimed(store, "b") == [second]


@pytest.mark.requirement("S4.7")
@pytest.mark.parametrize("stop", STOPS)
def test_a_stopped_job_blocks_its_lane(store: StoreUnderTest, stop: str) -> None:
    first, _second = lane(store, 2)
    assert store.end(store.claim_one(), STOPS[stop])
    assert store.state(first) == stop
    store.add(target="lane")
    store.advance(3600.0)
    store.store.make_ready(10)
    assert claimed(store) == []


@pytest.mark.requirement("S4.7", "S4.8", "P5")
@pytest.mark.parametrize("stop", STOPS)
def test_a_resumed_job_goes_before_those_that_waited_behind_it(
    store: StoreUnderTest, stop: str
) -> None:
    first, second = lane(store, 2)
    assert store.end(store.claim_one(), STOPS[stop])
    store.store.operate(OperatorVerb.RESUME, [first], "ann", None)
    attempt = store.claim_one("w2")
    assert attempt.job_id == first
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.7", "P5")
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("way", ["cancel", "delete"])
def test_a_lane_continues_when_its_blocking_job_is_gone(
    store: StoreUnderTest, stop: str, way: str
) -> None:
    first, second = lane(store, 2)
    assert store.end(store.claim_one(), STOPS[stop])
    if way == "cancel":
        store.store.operate(OperatorVerb.CANCEL, [first], "ann", "resolved")
        assert store.state(first) == "canceled"
    else:
        assert store.store.delete([first]) == [first]
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.7")
def test_a_policy_can_let_the_lane_continue_after_a_failure(store: StoreUnderTest) -> None:
    first = store.add(target="lane", policy=Policy(lane_on_failure="skip"))
    second = store.add(target="lane")
    assert store.end(store.claim_one(), OutcomeKind.FAIL)
    assert store.state(first) == "failed"
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.3", "S2.7")
@pytest.mark.parametrize("kind", [OutcomeKind.ERROR, OutcomeKind.SNOOZE, OutcomeKind.RETRY_LATER])
def test_no_job_overtakes_one_in_backoff(store: StoreUnderTest, kind: OutcomeKind) -> None:
    first, _second = lane(store, 2)
    assert store.end(store.claim_one(), kind, delay_seconds=60.0)
    assert claimed(store) == []
    store.advance(60.0)
    store.store.make_ready(10)
    assert claimed(store) == [first]


@pytest.mark.requirement("S4.3", "P5")
def test_not_even_an_older_job_overtakes_one_that_backs_off(store: StoreUnderTest) -> None:
    older, holder = lane(store, 2)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert store.end(store.claim_one(), OutcomeKind.RETRY_LATER, delay_seconds=60.0)
    store.store.operate(OperatorVerb.RETRY, [older], "ann", None)
    store.advance(60.0)
    store.store.make_ready(10)
    assert claimed(store) == [holder]


@pytest.mark.requirement("S4.3", "S0.7")
def test_a_lost_worker_does_not_let_the_next_one_past(store: StoreUnderTest) -> None:
    first = store.add(target="lane", policy=Policy(retry=Retry(base_seconds=60.0, jitter=0.0)))
    store.add(target="lane")
    store.claim_one()
    store.advance(LEASE_SECONDS)
    assert claimed(store) == []
    store.store.recover(10, 0.0)
    assert claimed(store) == []
    store.advance(60.0)
    store.store.make_ready(10)
    assert claimed(store) == [first]


@pytest.mark.requirement("S4.3")
def test_a_job_given_back_keeps_the_head_of_its_lane(store: StoreUnderTest) -> None:
    first, _second = lane(store, 2)
    assert store.end(store.claim_one(), OutcomeKind.GIVE_BACK)
    assert claimed(store) == [first]


@pytest.mark.requirement("P6")
def test_a_paused_follower_blocks_only_when_its_turn_comes(store: StoreUnderTest) -> None:
    first, second, third = lane(store, 3)
    running = store.claim_one()
    store.store.operate(OperatorVerb.PAUSE, [second], "ann", None)
    assert store.state(second) == "paused"
    assert store.end(running, OutcomeKind.ERROR, delay_seconds=0.0)
    running = store.claim_one()
    assert running.job_id == first
    assert store.end(running, OutcomeKind.SUCCESS)
    assert claimed(store) == []
    store.store.operate(OperatorVerb.RESUME, [second], "ann", None)
    running = store.claim_one()
    assert running.job_id == second
    assert store.end(running, OutcomeKind.SUCCESS)
    assert claimed(store) == [third]


@pytest.mark.requirement("P6")
def test_a_follower_resumed_in_time_never_blocks(store: StoreUnderTest) -> None:
    _first, second = lane(store, 2)
    running = store.claim_one()
    store.store.operate(OperatorVerb.PAUSE, [second], "ann", None)
    store.store.operate(OperatorVerb.RESUME, [second], "ann", None)
    assert claimed(store) == []
    assert store.end(running, OutcomeKind.SUCCESS)
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.7", "P6")
@pytest.mark.parametrize("together", [True, False], ids=["one call", "one by one"])
def test_a_head_paused_before_it_ran_blocks_its_lane(store: StoreUnderTest, together: bool) -> None:
    first, second = lane(store, 2, together=together)
    store.store.operate(OperatorVerb.PAUSE, [first], "ann", None)
    assert claimed(store) == []
    store.store.operate(OperatorVerb.CANCEL, [first], "ann", None)
    assert claimed(store) == [second]


@pytest.mark.requirement("S4.3")
@pytest.mark.parametrize("way", ["cancel", "delete"])
@pytest.mark.parametrize("together", [True, False], ids=["one call", "one by one"])
def test_a_lane_is_not_orphaned_when_its_head_vanishes_unclaimed(
    store: StoreUnderTest, way: str, together: bool
) -> None:
    first, second, third = lane(store, 3, together=together)
    for job_id in (first, second):
        if way == "cancel":
            store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
        else:
            store.store.delete([job_id])
    assert claimed(store) == [third]


@pytest.mark.requirement("P5", "S4.3")
def test_a_requeued_job_takes_its_old_position_in_its_lane(store: StoreUnderTest) -> None:
    first, second, third = lane(store, 3)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    running = store.claim_one()
    assert running.job_id == second
    store.store.operate(OperatorVerb.RETRY, [first], "ann", None)
    assert claimed(store) == []
    assert store.end(running, OutcomeKind.SUCCESS)
    again = store.claim_one()
    assert again.job_id == first
    assert store.end(again, OutcomeKind.SUCCESS)
    assert claimed(store) == [third]


@pytest.mark.requirement("S4.3")
def test_a_job_that_waits_for_its_time_does_not_hold_the_lane(store: StoreUnderTest) -> None:
    later = store.add(target="lane", delay_seconds=60.0)
    now, after = lane(store, 2)
    running = store.claim_one()
    assert running.job_id == now
    store.advance(20.0)
    assert store.end(running, OutcomeKind.SUCCESS)
    store.advance(40.0)
    store.store.make_ready(10)
    # Its time has come, and it is the oldest: but the next one already holds the lane.
    running = store.claim_one()
    assert running.job_id == after
    assert claimed(store) == []
    assert store.end(running, OutcomeKind.SUCCESS)
    assert claimed(store) == [later]
