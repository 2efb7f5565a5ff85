"""A lease goes on while it is renewed, shows what it is, and ends to the microsecond."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.model.job import Lease
from freehold.model.outcome import OutcomeKind
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

MICROSECOND = 0.000001


def lease_of(store: StoreUnderTest, job_id: int) -> Lease:
    lease = store.job(job_id).lease
    assert lease is not None
    return lease


@pytest.mark.requirement("S0.5", "S0.4")
def test_a_renewal_counts_from_the_databases_now(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.advance(10.0)
    renewed = store.store.renew("w1", [key_of(attempt)], 20.0)
    assert (renewed.held, renewed.lost) == ({attempt.job_id: None}, ())
    assert lease_of(store, attempt.job_id).expires_at == store.now() + timedelta(seconds=20)


@pytest.mark.requirement("S1.5")
def test_a_long_job_lives_on_short_leases(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    for _ in range(40):
        store.advance(LEASE_SECONDS / 3)
        assert store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS).lost == ()
        assert store.store.recover(10, 0.0) == []
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.job(attempt.job_id).attempt == 1


@pytest.mark.requirement("S1.5", "S0.9")
def test_a_crash_is_found_one_lease_after_the_last_sign_of_life(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.advance(LEASE_SECONDS - 1)
    store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS)
    store.advance(LEASE_SECONDS - MICROSECOND)
    assert store.store.recover(10, 0.0) == []
    store.advance(MICROSECOND)
    assert len(store.store.recover(10, 0.0)) == 1


@pytest.mark.requirement("P1")
def test_a_lease_holds_until_its_last_microsecond(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.advance(LEASE_SECONDS - MICROSECOND)
    assert store.end(attempt, OutcomeKind.SUCCESS)


@pytest.mark.requirement("S2.4")
def test_the_last_heartbeat_can_be_seen(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    leased_at = store.now()
    assert lease_of(store, attempt.job_id).heartbeat_at == leased_at
    store.advance(5.0)
    store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS)
    lease = lease_of(store, attempt.job_id)
    assert (lease.owner, lease.leased_at, lease.heartbeat_at) == ("w1", leased_at, store.now())


@pytest.mark.requirement("S2.3")
def test_assigned_and_running_are_distinct(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    assert store.state(attempt.job_id) == "assigned"
    store.advance(1.0)
    assert store.store.mark_running("w1", [key_of(attempt)]) == ()
    assert store.state(attempt.job_id) == "running"
    assert lease_of(store, attempt.job_id).started_at == store.now()


@pytest.mark.requirement("S2.3", "S2.5")
def test_started_at_is_the_start_of_the_run_and_not_of_the_write(
    store: StoreUnderTest,
) -> None:
    """A worker reports a job that has run for a while; no job runs before its lease."""
    for _ in range(2):
        store.add()
    first, second = store.claim("w1", 2)
    leased_at = store.now()
    store.advance(5.0)
    assert store.store.mark_running("w1", [key_of(first), key_of(second)], [2.0, 60.0]) == ()
    assert lease_of(store, first.job_id).started_at == store.now() - timedelta(seconds=2)
    assert lease_of(store, second.job_id).started_at == leased_at


@pytest.mark.requirement("S2.3")
def test_a_second_start_does_not_move_the_first(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.store.mark_running("w1", [key_of(attempt)])
    started_at = store.now()
    store.advance(1.0)
    assert store.store.mark_running("w1", [key_of(attempt)]) == ()
    assert lease_of(store, attempt.job_id).started_at == started_at


@pytest.mark.requirement("S0.5", "S0.6", "S0.12")
def test_renewing_several_leases_returns_held_and_lost_ones(store: StoreUnderTest) -> None:
    for _ in range(3):
        store.add()
    first, second, third = store.claim()
    store.end(second, OutcomeKind.SUCCESS)
    renewed = store.store.renew("w1", [key_of(each) for each in (first, second, third)], 60.0)
    assert renewed.held == {first.job_id: None, third.job_id: None}
    assert renewed.lost == (second.job_id,)


@pytest.mark.requirement("S0.5")
def test_a_renewal_touches_no_lease_of_another_owner(store: StoreUnderTest) -> None:
    store.add()
    store.add()
    mine, other = store.claim_one("w1"), store.claim_one("w2")
    ends = lease_of(store, other.job_id).expires_at
    store.advance(10.0)
    store.store.renew("w1", [key_of(mine)], LEASE_SECONDS)
    assert lease_of(store, other.job_id).expires_at == ends


@pytest.mark.requirement("S0.17", "S0.6")
def test_an_owner_can_ask_whether_its_lease_still_holds(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    assert store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS).lost == ()
    store.advance(LEASE_SECONDS)
    assert store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS).lost == (attempt.job_id,)


def test_renewing_and_starting_nothing_is_no_error(store: StoreUnderTest) -> None:
    renewed = store.store.renew("w1", [], LEASE_SECONDS)
    assert (renewed.held, renewed.lost) == ({}, ())
    assert store.store.mark_running("w1", []) == ()
