"""The limit of all queues holds over all tenants of one database (W)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg
import pytest

from freehold.errors import Refused
from freehold.model.job import Attempt, NewJob
from freehold.model.limit import ALL_QUEUES, ALL_TENANTS, NO_LIMIT, Limit
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.tenant import HOME_SHARD
from freehold.operator import Operator
from freehold.store.statements import Rows, Session, StatementGroup
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from freehold.store.verbs.claim import ClaimCursors
from tests.concurrency import wait_until
from tests.tenants.tenant_stores import EAST, TenantStores, add, claim_request

pytestmark = pytest.mark.requirement("S0.10", "P8")
on_postgres = pytest.mark.parametrize("urls", ["postgres"], indirect=True)
on_sqlite = pytest.mark.parametrize("urls", ["sqlite"], indirect=True)


def control(stores: TenantStores) -> Store:
    return Store(stores.control.session())


def create_tenants(stores: TenantStores, *names: str, jobs: int = 10) -> list[Store]:
    for name in names:
        stores.tenants.create(name)
    created = [stores.store_of(name) for name in names]
    for store in created:
        store.enqueue([NewJob(task="t")] * jobs)
    return created


def assert_claims(store: Store, count: int) -> None:
    """Exactly this many: room that others freed is visible a few milliseconds later."""
    leased: list[Attempt] = []

    def enough() -> bool:
        leased.extend(store.claim(claim_request()))
        return len(leased) >= count

    wait_until(enough, f"{count} are claimed")
    assert len(leased) == count
    assert store.claim(claim_request()) == []


def finish(store: Store, attempts: Sequence[Attempt]) -> None:
    done = [AttemptEnd(each, Outcome(kind=OutcomeKind.SUCCESS)) for each in attempts]
    store.finish("w", done)


@on_postgres
def test_tenants_and_the_control_store_share_the_limit(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    shared = control(stores)
    shared.enqueue([NewJob(task="t")] * 10)
    shared.set_queue_limit(ALL_QUEUES, Limit(5))

    first = acme.claim(claim_request(count=2))
    second = beta.claim(claim_request(count=2))
    third = shared.claim(claim_request(count=2))
    assert [len(first), len(second), len(third)] == [2, 2, 1]
    assert (
        acme.claim(claim_request())
        == beta.claim(claim_request())
        == shared.claim(claim_request())
        == []
    )

    finish(acme, first)
    assert_claims(beta, 2)
    finish(shared, third)
    assert len(shared.claim(claim_request())) == 1


@on_postgres
def test_leases_from_before_the_limit_count(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    leased = acme.claim(claim_request(count=4))
    control(stores).set_queue_limit(ALL_QUEUES, Limit(5))
    assert len(beta.claim(claim_request())) == 1
    finish(acme, leased)
    control(stores).set_queue_limit(ALL_QUEUES, Limit(2))
    assert len(acme.claim(claim_request())) == 1


@on_postgres
def test_the_limit_can_be_removed_and_set_again(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    shared = control(stores)
    cursors = ClaimCursors(time.monotonic)
    demands = ClaimRequest(owner="w", lease_seconds=30.0, demands=(QueueDemand("default", 3),))
    shared.set_queue_limit(ALL_QUEUES, Limit(1))
    assert len(acme.claim(demands, cursors)) == 1
    shared.set_queue_limit(ALL_QUEUES, NO_LIMIT)
    assert len(acme.claim(demands, cursors)) == 3
    assert not cursors["default"].limit_reached
    shared.set_queue_limit(ALL_QUEUES, Limit(5))
    assert len(acme.claim(demands, cursors)) == 1
    assert [cursor.limit_reached for cursor in cursors.values()] == [True]
    assert beta.claim(claim_request()) == []


@on_postgres
def test_a_tenants_own_limit_applies_to_that_tenant_only(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    control(stores).set_queue_limit(ALL_QUEUES, Limit(6))
    acme.set_queue_limit(ALL_QUEUES, Limit(2))
    acme.set_queue_limit("default", Limit(3))
    assert len(acme.claim(claim_request())) == 2
    assert_claims(beta, 4)


@on_postgres
def test_expired_leases_of_a_dead_worker_free_room(stores: TenantStores) -> None:
    """Without recovery: an expired lease does not count."""
    lease = 1.0
    acme, beta = create_tenants(stores, "acme", "beta")
    control(stores).set_queue_limit(ALL_QUEUES, Limit(7))
    began = time.monotonic()
    assert len(acme.claim(claim_request(lease_seconds=lease))) == 7
    leased: list[Attempt] = []

    def full() -> bool:
        leased.extend(beta.claim(claim_request()))
        return len(leased) >= 7

    wait_until(full, "the room of the dead worker is used")
    took = time.monotonic() - began
    assert len(leased) == 7
    assert took >= lease


@on_postgres
def test_a_broken_or_locked_tenant_does_not_stop_the_others(stores: TenantStores) -> None:
    acme, beta, gone = create_tenants(stores, "acme", "beta", "gone")
    control(stores).set_queue_limit(ALL_QUEUES, Limit(4))
    assert len(acme.claim(claim_request(count=2))) == len(gone.claim(claim_request(count=2))) == 2
    url = stores.urls[HOME_SHARD]
    with psycopg.connect(url) as locking, psycopg.connect(url, autocommit=True) as breaking:
        locking.execute("lock table freehold_t_acme.job")
        assert beta.claim(claim_request()) == []  # a locked table counts as before
        breaking.execute("drop table freehold_t_gone.job cascade")
        assert_claims(beta, 2)  # a dropped one does not count


@on_postgres
def test_a_moved_tenant_no_longer_counts(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    control(stores).set_queue_limit(ALL_QUEUES, Limit(2))
    finish(acme, acme.claim(claim_request()))
    stores.tenants.move("acme", EAST)
    assert_claims(beta, 2)
    assert len(acme.claim(claim_request())) == 8  # in another database, which has no limit


class RecordingSession:
    """Records the names of the statements in each group."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.groups: list[list[str]] = []

    def execute(self, group: StatementGroup) -> list[Rows]:
        self.groups.append([each.name for each in group.statements])
        return self._session.execute(group)


@on_postgres
def test_a_claim_is_one_statement_without_the_limit_and_one_round_trip_with_it(
    stores: TenantStores,
) -> None:
    create_tenants(stores, "acme", "beta")
    session = RecordingSession(stores.shards[HOME_SHARD].open("acme").session())
    acme, cursors = Store(session), ClaimCursors(lambda: 0.0)
    demands = ClaimRequest(owner="w", lease_seconds=30.0, demands=(QueueDemand("default", 1),))
    acme.claim(demands, cursors)
    acme.claim(demands, cursors)
    assert session.groups == [["claim_plain"]] * 2
    control(stores).set_queue_limit(ALL_QUEUES, Limit(5))
    session.groups.clear()
    acme.claim(demands, cursors)  # learns of the limit
    acme.claim(demands, cursors)
    limited = ["grant_leases", "claim"]
    assert session.groups == [["claim_plain"], ["claim"], limited, limited]
    control(stores).set_queue_limit(ALL_QUEUES, NO_LIMIT)
    session.groups.clear()
    acme.claim(demands, cursors)
    acme.claim(demands, cursors)
    assert session.groups == [limited, ["claim"]]


@on_postgres
def test_the_use_of_the_limit_is_shown_by_tenant(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta")
    shared = control(stores)
    shared.set_queue_limit(ALL_QUEUES, Limit(3))
    waiting = add(shared)
    acme.claim(claim_request(count=1))
    last = beta.claim(claim_request(count=2))[-1].job_id + 1
    for store, job_id in ((shared, waiting), (beta, last)):
        texts = [cause.text for cause in Operator(store).explain(job_id)]
        assert "the limit of all tenants is reached: 3 of 3 running: beta 2, acme 1" in texts
        assert [rules.name for rules in store.queue_rules("default")][-1] == ALL_TENANTS
    use = Operator(acme).shared_use()
    assert use is not None
    assert (use.limit, use.leased) == (Limit(3), 3)


@on_postgres
def test_an_idle_tenant_uses_no_room_and_is_not_limited(stores: TenantStores) -> None:
    acme, beta = create_tenants(stores, "acme", "beta", jobs=0)
    control(stores).set_queue_limit(ALL_QUEUES, Limit(5))
    cursors = ClaimCursors(time.monotonic)
    demands = ClaimRequest(owner="w", lease_seconds=30.0, demands=(QueueDemand("default", 5),))
    assert acme.claim(demands, cursors) == []
    assert not cursors["default"].limit_reached
    beta.enqueue([NewJob(task="t")] * 9)
    assert len(beta.claim(claim_request())) == 5


@on_postgres
def test_a_tenant_that_always_claims_first_does_not_starve_the_others(stores: TenantStores) -> None:
    """A worker that ends a job claims again before others can, so room is granted in turns."""
    acme, beta = create_tenants(stores, "acme", "beta", jobs=2000)
    control(stores).set_queue_limit(ALL_QUEUES, Limit(2))
    running = acme.claim(claim_request(count=2))
    served: list[Attempt] = []

    def beta_is_served() -> bool:
        finish(acme, running[:1])
        running[:1] = acme.claim(claim_request(count=1))
        served.extend(beta.claim(claim_request(count=2)))
        return bool(served)

    wait_until(beta_is_served, "beta is served")
    assert len(served) == 1
    assert len(running) == 1


@on_sqlite
def test_with_sqlite_the_limit_is_refused_beside_tenants(stores: TenantStores) -> None:
    shared = control(stores)
    shared.set_queue_limit(ALL_QUEUES, Limit(3))
    with pytest.raises(Refused, match="remove it first"):
        stores.tenants.create("acme")
    shared.set_queue_limit(ALL_QUEUES, NO_LIMIT)
    stores.tenants.create("acme")
    with pytest.raises(Refused, match="limit each tenant"):
        shared.set_queue_limit(ALL_QUEUES, Limit(3))
    stores.store_of("acme").set_queue_limit(ALL_QUEUES, Limit(3))
