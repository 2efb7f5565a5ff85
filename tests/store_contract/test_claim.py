"""Claiming: atomic, in order, only queued and due jobs, and without waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.store.types import ClaimRequest, QueueDemand
from tests.stores import LEASE_SECONDS, StoreUnderTest

CLAIMERS = 4


def claim_at_once(store: StoreUnderTest, count: int) -> list[Attempt]:
    """All claimers start together; what each of them got."""
    barrier = Barrier(CLAIMERS)

    def work(number: int) -> list[Attempt]:
        barrier.wait()
        return store.claim(f"w{number}", count)

    with ThreadPoolExecutor(CLAIMERS) as pool:
        return [attempt for won in pool.map(work, range(CLAIMERS)) for attempt in won]


def ids(attempts: list[Attempt]) -> list[int]:
    return [attempt.job_id for attempt in attempts]


@pytest.mark.requirement("S0.2", "S0.11", "S0.13", "S1.4")
def test_claimers_at_once_never_share_a_job(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(60)]
    won = claim_at_once(store, 10)
    assert len(ids(won)) == len(set(ids(won)))
    rest = store.claim("last", 100)
    assert sorted(ids(won) + ids(rest)) == jobs


@pytest.mark.requirement("S0.2", "S4.3", "S0.13")
def test_claimers_at_once_never_share_a_lane(store: StoreUnderTest) -> None:
    lanes = {store.add(target=f"lane {n % 6}"): n % 6 for n in range(24)}
    won = claim_at_once(store, 10) + store.claim("last", 100)
    assert sorted(lanes[job_id] for job_id in ids(won)) == list(range(6))
    assert sorted(ids(won)) == sorted(lanes)[:6]


@pytest.mark.requirement("S0.2")
def test_a_claimed_job_is_not_claimed_again(store: StoreUnderTest) -> None:
    store.add()
    store.claim_one("w1")
    assert store.claim("w2") == []
    assert store.claim("w1") == []


@pytest.mark.requirement("S0.4", "S2.4", "P11")
def test_a_lease_ends_by_the_databases_clock(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.advance(7.25)
    attempt = store.claim_one("w1", lease_seconds=12.5)
    lease = store.job(job_id).lease
    assert lease is not None
    assert (lease.owner, lease.token) == ("w1", attempt.token)
    assert lease.leased_at == lease.heartbeat_at == store.now()
    assert lease.expires_at == store.now() + timedelta(seconds=12.5)
    assert lease.expires_at.utcoffset() == timedelta(0)
    assert lease.started_at is None


@pytest.mark.requirement("S0.14")
def test_the_urgent_come_first_then_the_oldest(store: StoreUnderTest) -> None:
    low, old, high, new = (store.add(priority=p) for p in (-1, 0, 9, 0))
    assert [store.claim_one().job_id for _ in range(4)] == [high, old, new, low]


@pytest.mark.requirement("S0.14")
def test_a_claim_of_several_returns_them_in_order(store: StoreUnderTest) -> None:
    low, old, high, new = (store.add(priority=p) for p in (-1, 0, 9, 0))
    assert ids(store.claim(count=3)) == [high, old, new]
    assert ids(store.claim()) == [low]


@pytest.mark.requirement("S2.2", "S0.14")
def test_equals_are_served_in_the_order_of_their_creation(store: StoreUnderTest) -> None:
    jobs = [store.add(task=f"t{n}") for n in range(20)]
    assert ids(store.claim(count=7)) + ids(store.claim("w2")) == jobs


@pytest.mark.requirement("S2.2")
def test_a_released_job_keeps_its_position(store: StoreUnderTest) -> None:
    first, second = store.add(), store.add()
    store.store.give_back("w1", [store.claim_one()])
    assert ids(store.claim("w2")) == [first, second]


@pytest.mark.requirement("S1.1")
def test_nothing_but_queued_and_due_is_claimed(store: StoreUnderTest) -> None:
    store.add()
    done = store.claim_one()
    store.add(pending=True)
    store.add(delay_seconds=1.0)
    store.store.operate(OperatorVerb.PAUSE, [store.add()], "ann", None)
    store.store.operate(OperatorVerb.CANCEL, [store.add()], "ann", None)
    for kind in (OutcomeKind.FAIL, OutcomeKind.PAUSE, OutcomeKind.CANCEL):
        store.add()
        assert store.end(store.claim_one("w2"), kind)
    assert store.end(done, OutcomeKind.SUCCESS)
    store.add(queue="other")
    before = store.everything()
    assert store.claim() == []
    assert store.everything() == before


@pytest.mark.requirement("S1.1", "S0.7")
def test_an_expired_lease_is_not_claimed_before_it_is_recovered(store: StoreUnderTest) -> None:
    """Recovery decides what becomes of it: a retry, a pause on request, the end."""
    store.add(max_attempts=1)
    store.claim_one("w1")
    store.advance(LEASE_SECONDS + 1)
    assert store.claim("w2") == []


@pytest.mark.requirement("S1.2")
def test_a_claim_counts_one_attempt(store: StoreUnderTest) -> None:
    job_id = store.add()
    assert store.claim_one().number == 1
    assert store.job(job_id).attempt == 1
    store.store.mark_running("w1", [])
    assert store.job(job_id).attempt == 1


@pytest.mark.requirement("S1.1")
def test_a_claim_takes_no_more_than_it_wants_of_each_queue(store: StoreUnderTest) -> None:
    for queue in ("a", "b", "c"):
        for _ in range(4):
            store.add(queue=queue)
    demands = (QueueDemand("b", 3), QueueDemand("a", 1), QueueDemand("empty", 5))
    attempts = store.store.claim(
        ClaimRequest(owner="w1", lease_seconds=LEASE_SECONDS, demands=demands)
    )
    assert [attempt.queue for attempt in attempts] == ["b", "b", "b", "a"]
    assert store.claim(queue="a", count=0) == []


@pytest.mark.requirement("S4.4")
def test_a_claim_starts_without_a_stale_request(store: StoreUnderTest) -> None:
    job_id = store.add(target="lane")
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "too late")
    assert store.end(attempt, OutcomeKind.CANCEL)
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    store.claim_one()
    job = store.job(job_id)
    assert (job.state, job.stop_request, job.stop_requested_by, job.stop_request_reason) == (
        "assigned",
        None,
        None,
        None,
    )
    assert store.store.stop_requests("w1") == {}


@pytest.mark.requirement("S0.17")
def test_a_holder_can_prove_its_lease_by_its_token(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    lease = store.job(job_id).lease
    assert lease is not None
    assert lease.token == attempt.token
