"""The clock going back: leases, heartbeats and rates do not wait for the whole step."""

from __future__ import annotations

import pytest

from freehold.model.explain import LimitUse
from freehold.model.limit import Limit, Rate
from freehold.model.outcome import OutcomeKind
from tests.store_contract.test_workers import word
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

STEP_SECONDS = 3600.0


def lease_seconds_left(store: StoreUnderTest, job_id: int) -> float:
    lease = store.job(job_id).lease
    assert lease is not None
    return (lease.expires_at - store.now()).total_seconds()


@pytest.mark.requirement("S0.7", "P11")
@pytest.mark.parametrize("renewed", [False, True])
def test_a_dead_workers_job_comes_back_one_lease_after_the_clock_going_back(
    store: StoreUnderTest, renewed: bool
) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    if renewed:
        store.advance(LEASE_SECONDS / 3)
        store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS)
    store.advance(-STEP_SECONDS)
    assert store.store.restart_leases(10) == 1
    assert lease_seconds_left(store, job_id) == LEASE_SECONDS
    assert store.store.recover(10, 0.5) == []
    store.advance(LEASE_SECONDS)
    assert [each.attempt.job_id for each in store.store.recover(10, 0.5)] == [job_id]
    assert not store.end(attempt, OutcomeKind.SUCCESS)


@pytest.mark.requirement("S0.7", "P11")
def test_a_live_worker_keeps_its_job_through_the_clock_going_back(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.advance(-STEP_SECONDS)
    store.store.restart_leases(10)
    for _ in range(6):
        store.advance(LEASE_SECONDS / 3)
        assert store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS).lost == ()
        assert (store.store.restart_leases(10), store.store.recover(10, 0.5)) == (0, [])
    assert store.end(attempt, OutcomeKind.SUCCESS)


@pytest.mark.requirement("S0.7")
def test_leases_of_an_ordinary_clock_are_left_alone(store: StoreUnderTest) -> None:
    store.add()
    store.add()
    store.claim_one("w1")
    store.advance(LEASE_SECONDS)
    store.claim_one("w2", lease_seconds=1_000_000.0)
    before = store.everything()
    assert store.store.restart_leases(10) == 0
    assert store.everything() == before


@pytest.mark.requirement("S3.1")
def test_restarting_leases_is_bounded(store: StoreUnderTest) -> None:
    for _ in range(5):
        store.add()
    store.claim()
    store.advance(-STEP_SECONDS)
    assert [store.store.restart_leases(2) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.requirement("S0.7")
def test_a_lease_longer_than_any_workers_ends(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    forever = {"postgres": "'infinity'", "sqlite": str(2**62)}[store.kind]
    store.sql(f"update {{s}}job set lease_expires_at = {forever} where id = {job_id}")
    assert store.store.restart_leases(10) == 1
    assert [each.attempt.job_id for each in store.store.recover(10, 0.5)] == [job_id]
    assert not store.end(attempt, OutcomeKind.SUCCESS)


@pytest.mark.parametrize("limited", ["queue", "key"])
def test_a_rate_does_not_count_starts_of_the_future_after_the_clock_going_back(
    store: StoreUnderTest, limited: str
) -> None:
    limit = Limit(rate=Rate(2, 10.0))
    if limited == "queue":
        store.store.set_queue_limit("default", limit)
    else:
        store.store.set_key_limit("k", limit)
    for _ in range(6):
        store.add(limit_key="k")
    assert len(store.claim()) == 2
    store.advance(-STEP_SECONDS)
    store.store.admit_limited(10)

    def use() -> LimitUse:
        if limited == "key":
            return store.store.key_use("k")
        return store.store.queue_rules("default")[0].use

    assert use().started == 0
    assert len(store.claim("w2")) == 2
    assert store.claim("w3") == []
    assert use().next_start_seconds == pytest.approx(10.25, abs=0.25)
    store.advance(10.5)
    store.store.admit_limited(10)
    assert len(store.claim("w4")) == 2


def test_a_worker_seen_in_the_future_is_listed_again_with_its_next_heartbeat(
    store: StoreUnderTest,
) -> None:
    store.store.heartbeat(word("w1"), 30.0)
    store.store.heartbeat(word("w2"), 30.0)
    store.advance(-STEP_SECONDS)
    assert (store.store.workers(), store.store.sweep_check(()).workers) == ([], 0)
    store.store.heartbeat(word("w1"), 30.0)
    assert [worker.owner for worker in store.store.workers()] == ["w1"]
    assert store.store.remove_silent_workers(3600.0) == 1
    assert [worker.owner for worker in store.store.workers()] == ["w1"]
