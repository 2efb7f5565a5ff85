"""Limits: never more than allowed, nothing waits behind what has to, and room comes back."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.model.limit import ALL_QUEUES, NO_LIMIT, Limit, Rate
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.store.verbs.claim import ClaimCursors
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of


def ids(store: StoreUnderTest, queue: str = "default", **request: Any) -> list[int]:
    return [attempt.job_id for attempt in store.claim(queue=queue, **request)]


# -- a queue, and all of them ------------------------------------------------------------------


@pytest.mark.requirement("S0.10")
def test_a_queue_never_has_more_live_leases_than_its_limit(store: StoreUnderTest) -> None:
    store.store.set_queue_limit("default", Limit(3))
    jobs = [store.add() for _ in range(10)]
    first = store.claim()
    assert [attempt.job_id for attempt in first] == jobs[:3]
    assert ids(store) == []
    assert store.end(first[1], OutcomeKind.SUCCESS)
    assert ids(store) == [jobs[3]]


@pytest.mark.requirement("S0.10", "P8")
def test_the_limit_over_all_queues_counts_each_of_them(store: StoreUnderTest) -> None:
    store.store.set_queue_limit(ALL_QUEUES, Limit(3))
    for queue in ("a", "b"):
        for _ in range(5):
            store.add(queue=queue)
    assert len(ids(store, "a", count=2)) == 2
    assert len(ids(store, "b")) == 1
    assert ids(store, "a") == ids(store, "b") == []


@pytest.mark.requirement("S0.10")
def test_a_limited_queue_does_not_limit_another(store: StoreUnderTest) -> None:
    store.store.set_queue_limit("a", Limit(1))
    for queue in ("a", "b"):
        for _ in range(5):
            store.add(queue=queue)
    assert len(ids(store, "a")) == 1
    assert len(ids(store, "b")) == 5


@pytest.mark.requirement("S0.10", "S0.7")
def test_an_expired_lease_does_not_count(store: StoreUnderTest) -> None:
    store.store.set_queue_limit("default", Limit(2))
    jobs = [store.add() for _ in range(4)]
    assert ids(store) == jobs[:2]
    store.advance(LEASE_SECONDS + 0.001)
    # Nobody has recovered anything yet: the room is back all the same.
    assert ids(store) == jobs[2:]


@pytest.mark.requirement("S0.10", "P1")
def test_an_expired_lease_cannot_be_renewed_over_the_limit(store: StoreUnderTest) -> None:
    store.store.set_queue_limit("default", Limit(1))
    store.add(), store.add()
    late = store.claim_one("late")
    store.advance(LEASE_SECONDS + 0.001)
    assert len(ids(store, owner="next")) == 1
    assert store.store.renew("late", [key_of(late)], LEASE_SECONDS).lost == (late.job_id,)
    assert not store.end(late, OutcomeKind.SUCCESS)


@pytest.mark.requirement("S0.10")
def test_a_limit_of_none_stops_and_a_lifted_one_lets_go(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(3)]
    store.store.set_queue_limit("default", Limit(0))
    assert ids(store) == []
    store.store.set_queue_limit("default", NO_LIMIT)
    assert ids(store) == jobs


def test_a_claimer_that_remembers_a_limit_notices_that_it_is_gone(store: StoreUnderTest) -> None:
    cursors = ClaimCursors(lambda: 0.0)
    jobs = [store.add() for _ in range(3)]
    store.store.set_queue_limit("default", Limit(1))
    assert ids(store, cursors=cursors) == jobs[:1]
    assert cursors["default"].limit_reached
    store.store.set_queue_limit("default", NO_LIMIT)
    assert ids(store, cursors=cursors) == jobs[1:]
    assert not cursors["default"].limit_reached


@pytest.mark.requirement("P8")
def test_a_limited_queue_is_not_claimed_ahead(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(6)]
    store.store.set_queue_limit("default", Limit(5))
    request = ClaimRequest(
        owner="w1", lease_seconds=LEASE_SECONDS, demands=(QueueDemand("default", 4, ahead=3),)
    )
    assert [attempt.job_id for attempt in store.store.claim(request)] == jobs[:1]


# -- keys --------------------------------------------------------------------------------------


@pytest.mark.requirement("S0.10", "P8")
def test_jobs_that_wait_for_a_key_do_not_block_others(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(2))
    keyed = [store.add(limit_key="smtp") for _ in range(50)]
    plain = store.add()
    assert ids(store, count=3) == [keyed[0], keyed[1], plain]
    assert ids(store) == []


@pytest.mark.parametrize("end", [OutcomeKind.SUCCESS, OutcomeKind.FAIL, OutcomeKind.PAUSE])
def test_room_for_a_key_comes_back_with_the_end(store: StoreUnderTest, end: OutcomeKind) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    jobs = [store.add(limit_key="smtp") for _ in range(3)]
    for job_id in jobs:
        attempt = store.claim_one()
        assert attempt.job_id == job_id
        assert ids(store) == []
        assert store.end(attempt, end)
    assert ids(store) == []


@pytest.mark.requirement("S0.10")
def test_room_for_a_key_comes_back_with_the_recovery(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    first, second = (store.add(limit_key="smtp") for _ in range(2))
    assert ids(store) == [first]
    assert ids(store) == []
    store.advance(LEASE_SECONDS + 0.001)
    assert len(store.store.recover(10, 0.5)) == 1
    assert ids(store) == [second]


def test_the_keys_of_a_class_are_limited_each_for_itself(store: StoreUnderTest) -> None:
    store.store.set_key_limit("github:*", Limit(1))
    store.store.set_key_limit("github:big", Limit(3))
    for key in ("github:a", "github:b", "github:big", "gitlab:a"):
        for _ in range(4):
            store.add(limit_key=key)
    won = [attempt.limit_key for attempt in store.claim()]
    counts = {key: won.count(key) for key in won}
    assert counts == {"github:a": 1, "github:b": 1, "github:big": 3, "gitlab:a": 4}


def test_a_key_keeps_the_order_of_its_jobs(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    low = store.add(limit_key="smtp")
    lower = store.add(limit_key="smtp", priority=-5)
    high = store.add(limit_key="smtp", priority=5)
    order = []
    for _ in range(3):
        attempt = store.claim_one()
        order.append(attempt.job_id)
        store.end(attempt, OutcomeKind.SUCCESS)
    assert order == [high, low, lower]


def test_a_canceled_job_does_not_take_the_room_it_was_given(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    jobs = [store.add(limit_key="smtp") for _ in range(3)]
    attempt = store.claim_one()
    assert ids(store) == []  # the others now wait
    store.end(attempt, OutcomeKind.SUCCESS)  # the second is ready
    store.store.operate(OperatorVerb.CANCEL, [jobs[1]], "ann", None)
    assert ids(store) == [jobs[2]]


def test_a_lifted_key_limit_lets_all_go_by_the_sweep(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    jobs = [store.add(limit_key="smtp") for _ in range(5)]
    assert ids(store) == jobs[:1]
    store.store.set_key_limit("smtp", NO_LIMIT)
    assert store.store.admit_limited(100) == 4
    assert ids(store) == jobs[1:]


@pytest.mark.requirement("S4.3", "P8")
def test_a_lane_waits_with_its_head_for_the_key(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    other = store.add(limit_key="smtp")
    head = store.add(limit_key="smtp", target="lane")
    follower = store.add(target="lane")
    holder = store.claim_one()
    assert holder.job_id == other
    assert ids(store) == []  # the follower must not overtake the head of its lane
    store.end(holder, OutcomeKind.SUCCESS)
    attempt = store.claim_one()
    assert attempt.job_id == head
    assert ids(store) == []
    store.end(attempt, OutcomeKind.SUCCESS)
    assert ids(store) == [follower]


@pytest.mark.requirement("P8")
def test_a_limited_key_is_not_claimed_ahead(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(10))
    keyed = [store.add(limit_key="smtp") for _ in range(3)]
    plain = [store.add() for _ in range(3)]
    request = ClaimRequest(
        owner="w1", lease_seconds=LEASE_SECONDS, demands=(QueueDemand("default", 4, ahead=2),)
    )
    won = {attempt.job_id for attempt in store.store.claim(request)}
    assert len(won) == 4
    # Which of the two free slots a plain job took meanwhile, is the store's affair.
    assert won & set(keyed) in ({keyed[0]}, {keyed[0], keyed[1]})
    assert len(won & set(plain)) >= 2


@pytest.mark.requirement("P3")
def test_a_job_that_lost_its_worker_is_not_claimed_ahead(store: StoreUnderTest) -> None:
    lost = store.add(max_attempts=5)
    store.claim()
    store.advance(LEASE_SECONDS + 0.001)
    store.store.recover(10, 0.0)
    store.advance(3600.0)
    store.store.make_ready(10)
    plain = [store.add() for _ in range(3)]
    ahead = ClaimRequest(
        owner="w1", lease_seconds=LEASE_SECONDS, demands=(QueueDemand("default", 2, ahead=2),)
    )
    assert [attempt.job_id for attempt in store.store.claim(ahead)] == plain[:2]
    at_once = ClaimRequest(
        owner="w1", lease_seconds=LEASE_SECONDS, demands=(QueueDemand("default", 2, ahead=1),)
    )
    assert [attempt.job_id for attempt in store.store.claim(at_once)] == [lost, plain[2]]


# -- rates -------------------------------------------------------------------------------------


def test_a_rate_holds_in_any_window_of_its_period(store: StoreUnderTest) -> None:
    """A poller of half a second over ten periods: no window of 10 s has more than 5 starts."""
    store.store.set_queue_limit("default", Limit(rate=Rate(5, 10.0)))
    for _ in range(60):
        store.add()
    starts: list[float] = []
    for step in range(200):
        starts += [step * 0.5] * len(store.claim())
        store.advance(0.5)
    for start in starts:
        assert len([at for at in starts if start <= at < start + 10.0]) <= 5
    # Exact, and hardly less than allowed: a slot of a twentieth may come late, each period.
    assert len(starts) >= 45


def test_the_rate_of_a_key_makes_only_its_own_jobs_wait(store: StoreUnderTest) -> None:
    store.store.set_key_limit("api:*", Limit(rate=Rate(2, 60.0)))
    keyed = [store.add(limit_key="api:a") for _ in range(5)]
    other = store.add(limit_key="api:b")
    plain = store.add()
    assert ids(store) == [*keyed[:2], other, plain]
    assert ids(store) == []
    store.advance(64.0)
    assert store.store.admit_limited(100) == 2
    assert ids(store) == keyed[2:4]


def test_a_failed_attempt_has_started_all_the_same(store: StoreUnderTest) -> None:
    store.store.set_queue_limit("default", Limit(rate=Rate(1, 60.0)))
    store.add(), store.add()
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert ids(store) == []


def test_a_parked_job_uses_no_rate(store: StoreUnderTest) -> None:
    """Or workers that do not know a task would use up all its starts."""
    store.store.set_queue_limit("default", Limit(rate=Rate(1, 60.0)))
    store.store.set_key_limit("api", Limit(rate=Rate(1, 60.0)))
    job_id = store.add(task="strange", limit_key="api")
    assert store.claim(tasks=frozenset({"known"})) == []
    assert store.store.unpark(["strange"], 10) == 1
    assert [each.job_id for each in store.claim(tasks=frozenset({"strange"}))] == [job_id]


# -- seen from outside -------------------------------------------------------------------------


def test_limits_can_be_read_back(store: StoreUnderTest) -> None:
    limit = Limit(7, Rate(100, 60.0))
    store.store.set_queue_limit("mail", limit)
    store.store.set_queue_limit(ALL_QUEUES, Limit(1000))
    store.store.set_weight("mail", 2.5)
    store.store.set_key_limit("smtp", Limit(2))
    (mail,) = store.store.queues()
    assert (mail.name, mail.limit, mail.weight) == ("mail", limit, 2.5)
    (rule,) = store.store.key_limits()
    assert (rule.name, rule.limit) == ("smtp", Limit(2))
    every, of_mail = store.store.queue_limits()
    assert (every.name, every.limit) == (ALL_QUEUES, Limit(1000))
    assert (of_mail.name, of_mail.limit) == ("mail", limit)


def test_the_use_of_a_key_names_a_job_that_holds_it(store: StoreUnderTest) -> None:
    store.store.set_key_limit("smtp", Limit(1))
    jobs = [store.add(limit_key="smtp") for _ in range(3)]
    store.claim()
    use = store.store.key_use("smtp")
    assert (use.limit, use.leased, use.holder) == (Limit(1), 1, jobs[0])
    assert not store.store.key_use("other").limit
