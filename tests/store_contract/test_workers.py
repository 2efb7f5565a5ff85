"""Who is at work: believed while heard, listed no more when gone, forgotten when long silent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from freehold.model.audit import AuditFilter, AuditKind
from freehold.model.worker_info import Heartbeat, WorkerState
from freehold.operator import Operator
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

EXPIRY = 30.0


def word(owner: str = "w1", **fields: Any) -> Heartbeat:
    return Heartbeat(
        owner=owner,
        host="box",
        pid=7,
        concurrency=10,
        queues=("default", "mail"),
        tasks=("t", "é"),
        version="1",
        **fields,
    )


def owners(store: StoreUnderTest) -> list[str]:
    return [worker.owner for worker in store.store.workers()]


@pytest.mark.requirement("S2.11")
def test_a_worker_is_listed_as_it_described_itself(store: StoreUnderTest) -> None:
    beat = word(manager="m1", running=3, waiting=2, finished=2**40, state=WorkerState.STUCK)
    store.store.heartbeat(beat, EXPIRY)
    (seen,) = store.store.workers()
    assert {name: getattr(seen, name) for name in beat.__struct_fields__} == {
        name: getattr(beat, name) for name in beat.__struct_fields__
    }
    now = store.now()
    assert (seen.started_at, seen.seen_at) == (now, now)
    assert seen.expires_at == now + timedelta(seconds=EXPIRY)


def test_a_later_heartbeat_updates_the_row_and_keeps_the_start(store: StoreUnderTest) -> None:
    store.store.heartbeat(word(), EXPIRY)
    started = store.now()
    store.advance(10.0)
    changed = word(manager="m2", running=1, waiting=4, finished=9, state=WorkerState.DRAINING)
    store.store.heartbeat(changed, EXPIRY)
    (seen,) = store.store.workers()
    assert (seen.started_at, seen.seen_at) == (started, store.now())
    assert (seen.manager, seen.running, seen.waiting, seen.finished) == ("m2", 1, 4, 9)
    assert seen.state is WorkerState.DRAINING


@pytest.mark.parametrize(
    ("fields", "idle"),
    [
        ({}, True),
        ({"running": 1}, False),
        ({"waiting": 1}, False),
        ({"state": WorkerState.DRAINING}, False),
    ],
)
def test_a_worker_without_leases_is_idle(
    store: StoreUnderTest, fields: dict[str, Any], idle: bool
) -> None:
    store.store.heartbeat(word(**fields), EXPIRY)
    assert [worker.is_idle for worker in store.store.workers()] == [idle]


def test_a_silent_worker_is_listed_until_its_heartbeat_expires(store: StoreUnderTest) -> None:
    store.store.heartbeat(word("a"), EXPIRY)
    store.advance(EXPIRY - 0.000001)
    store.store.heartbeat(word("b"), EXPIRY)
    assert owners(store) == ["a", "b"]
    store.advance(0.000001)
    assert owners(store) == ["b"]


def test_an_expired_worker_that_speaks_again_is_back(store: StoreUnderTest) -> None:
    store.store.heartbeat(word(), EXPIRY)
    store.advance(EXPIRY * 2)
    store.store.heartbeat(word(), EXPIRY)
    assert owners(store) == ["w1"]


def test_a_worker_that_ended_is_not_listed(store: StoreUnderTest) -> None:
    store.store.heartbeat(word("a"), EXPIRY)
    store.store.heartbeat(word("b"), EXPIRY)
    store.store.remove_worker("a")
    store.store.remove_worker("never came")
    assert owners(store) == ["b"]


def test_those_silent_for_long_are_forgotten_and_no_others(store: StoreUnderTest) -> None:
    store.store.heartbeat(word("dead"), EXPIRY)
    store.advance(60.0)
    store.store.heartbeat(word("late"), EXPIRY)
    store.advance(EXPIRY + 40.0)
    store.store.heartbeat(word("alive"), EXPIRY)
    assert store.store.remove_silent_workers(100.0) == 1
    rows = store.sql("select owner from {s}worker order by owner")
    assert rows == [("alive",), ("late",)]
    assert store.store.remove_silent_workers(100.0) == 0


@pytest.mark.requirement("S0.6")
def test_a_renewal_carries_a_heartbeat(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    renewed = store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS, word(running=1), EXPIRY)
    assert renewed.held == {attempt.job_id: None}
    assert [worker.running for worker in store.store.workers()] == [1]


@pytest.mark.requirement("P1")
def test_a_heartbeat_renews_no_lease(store: StoreUnderTest) -> None:
    """Being alive is not owning: what decides is the job's row alone."""
    store.add()
    attempt = store.claim_one()
    store.advance(LEASE_SECONDS)
    renewed = store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS, word(), EXPIRY)
    assert renewed.lost == (attempt.job_id,)
    assert owners(store) == ["w1"]


def test_the_order_is_that_of_coming(store: StoreUnderTest) -> None:
    for owner in ("c", "a", "b"):
        store.store.heartbeat(word(owner), EXPIRY)
        store.advance(1.0)
    store.store.heartbeat(replace(word("c"), running=1), EXPIRY)
    assert owners(store) == ["c", "a", "b"]


def test_the_decisions_of_a_manager_are_in_the_audit(store: StoreUnderTest) -> None:
    store.store.record_scaling("m1", 2, 6, "40 ready, 3 leased")
    store.store.record_scaling("m2", 6, 4, "2 workers idle")
    operator = Operator(store.store)
    (found,) = operator.audit(AuditFilter(kind=AuditKind.FLEET, subject="m1")).entries
    assert (found.by, found.via, found.verb, found.reason) == (
        "m1",
        "manager",
        "scale",
        "40 ready, 3 leased",
    )
    assert found.after == {"from": 2, "to": 6}
