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
from freehold.store.claim_cursor import ClaimCursors
from freehold.store.statements import Rows, Session, StatementGroup
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from tests.crowd import wait_until
from tests.tenants.rooms import EAST, Rooms, add, ask

pytestmark = pytest.mark.requirement("S0.10", "P8")
on_postgres = pytest.mark.parametrize("urls", ["postgres"], indirect=True)
on_sqlite = pytest.mark.parametrize("urls", ["sqlite"], indirect=True)


def control(house: Rooms) -> Store:
    return Store(house.control.session())


def tenants(house: Rooms, *names: str, jobs: int = 10) -> list[Store]:
    for name in names:
        house.tenancy.create(name)
    stores = [house.inside(name) for name in names]
    for store in stores:
        store.enqueue([NewJob(task="t")] * jobs)
    return stores


def claims_in_the_end(store: Store, count: int) -> None:
    """So many and no more: what others have left is seen a few milliseconds later."""
    held: list[Attempt] = []

    def enough() -> bool:
        held.extend(store.claim(ask()))
        return len(held) >= count

    wait_until(enough, f"{count} are claimed")
    assert len(held) == count
    assert store.claim(ask()) == []


def finish(store: Store, attempts: Sequence[Attempt]) -> None:
    done = [AttemptEnd(each, Outcome(kind=OutcomeKind.SUCCESS)) for each in attempts]
    store.finish("w", done)


@on_postgres
def test_tenants_and_the_control_store_share_it(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    shared = control(house)
    shared.enqueue([NewJob(task="t")] * 10)
    shared.set_queue_limit(ALL_QUEUES, Limit(5))

    first = acme.claim(ask(count=2))
    second = beta.claim(ask(count=2))
    third = shared.claim(ask(count=2))
    assert [len(first), len(second), len(third)] == [2, 2, 1]
    assert acme.claim(ask()) == beta.claim(ask()) == shared.claim(ask()) == []

    finish(acme, first)
    claims_in_the_end(beta, 2)
    finish(shared, third)
    assert len(shared.claim(ask())) == 1


@on_postgres
def test_it_counts_what_was_leased_before_it_was_set(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    leased = acme.claim(ask(count=4))
    control(house).set_queue_limit(ALL_QUEUES, Limit(5))
    assert len(beta.claim(ask())) == 1
    finish(acme, leased)
    control(house).set_queue_limit(ALL_QUEUES, Limit(2))
    assert len(acme.claim(ask())) == 1


@on_postgres
def test_lifted_it_is_gone_and_set_again_it_holds(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    shared = control(house)
    memory = ClaimCursors(time.monotonic)
    wants = ClaimRequest(
        owner="w", lease_seconds=30.0, wants=(QueueDemand("default", 3),), memory=memory
    )
    shared.set_queue_limit(ALL_QUEUES, Limit(1))
    assert len(acme.claim(wants)) == 1
    shared.set_queue_limit(ALL_QUEUES, NO_LIMIT)
    assert len(acme.claim(wants)) == 3
    assert not memory.place("default").held_back
    shared.set_queue_limit(ALL_QUEUES, Limit(5))
    assert len(acme.claim(wants)) == 1
    assert memory.place("default").held_back
    assert beta.claim(ask()) == []


@on_postgres
def test_a_tenants_own_limit_stays_its_own(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    control(house).set_queue_limit(ALL_QUEUES, Limit(6))
    acme.set_queue_limit(ALL_QUEUES, Limit(2))
    acme.set_queue_limit("default", Limit(3))
    assert len(acme.claim(ask())) == 2
    claims_in_the_end(beta, 4)


@on_postgres
def test_the_room_of_the_dead_comes_back_with_their_leases(house: Rooms) -> None:
    """Nobody recovers anything here: an expired lease does not count by itself."""
    lease = 1.0
    acme, beta = tenants(house, "acme", "beta")
    control(house).set_queue_limit(ALL_QUEUES, Limit(7))
    began = time.monotonic()
    assert len(acme.claim(ask(lease_seconds=lease))) == 7
    held: list[Attempt] = []

    def full() -> bool:
        held.extend(beta.claim(ask()))
        return len(held) >= 7

    wait_until(full, "the dead's room is used")
    took = time.monotonic() - began
    assert len(held) == 7
    assert took >= lease


@on_postgres
def test_a_broken_or_locked_tenant_stops_nobody(house: Rooms) -> None:
    acme, beta, gone = tenants(house, "acme", "beta", "gone")
    control(house).set_queue_limit(ALL_QUEUES, Limit(4))
    assert len(acme.claim(ask(count=2))) == len(gone.claim(ask(count=2))) == 2
    url = house.urls[HOME_SHARD]
    with psycopg.connect(url) as locking, psycopg.connect(url, autocommit=True) as breaking:
        locking.execute("lock table freehold_t_acme.job")
        assert beta.claim(ask()) == []  # what cannot be looked at counts as before
        breaking.execute("drop table freehold_t_gone.job cascade")
        claims_in_the_end(beta, 2)  # what is gone does not


@on_postgres
def test_who_moves_away_takes_nothing_along(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    control(house).set_queue_limit(ALL_QUEUES, Limit(2))
    finish(acme, acme.claim(ask()))
    house.tenancy.move("acme", EAST)
    claims_in_the_end(beta, 2)
    assert len(acme.claim(ask())) == 8  # at another database, which has no limit


class Counted:
    """A session that tells how many statements each batch had."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.batches: list[list[str]] = []

    def execute(self, batch: StatementGroup) -> list[Rows]:
        self.batches.append([each.name for each in batch.statements])
        return self._session.execute(batch)


@on_postgres
def test_without_it_a_claim_is_one_statement_and_with_it_one_round_trip(house: Rooms) -> None:
    tenants(house, "acme", "beta")
    session = Counted(house.places[HOME_SHARD].open("acme").session())
    acme, memory = Store(session), ClaimCursors(lambda: 0.0)
    wants = ClaimRequest(
        owner="w", lease_seconds=30.0, wants=(QueueDemand("default", 1),), memory=memory
    )
    acme.claim(wants)
    acme.claim(wants)
    assert session.batches == [["claim_plain"]] * 2
    control(house).set_queue_limit(ALL_QUEUES, Limit(5))
    session.batches.clear()
    acme.claim(wants)  # learns of it
    acme.claim(wants)
    limited = ["grant_leases", "claim"]
    assert session.batches == [["claim_plain"], ["claim"], limited, limited]
    control(house).set_queue_limit(ALL_QUEUES, NO_LIMIT)
    session.batches.clear()
    acme.claim(wants)
    acme.claim(wants)
    assert session.batches == [limited, ["claim"]]


@on_postgres
def test_who_holds_how_many_is_told(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta")
    shared = control(house)
    shared.set_queue_limit(ALL_QUEUES, Limit(3))
    waiting = add(shared)
    acme.claim(ask(count=1))
    last = beta.claim(ask(count=2))[-1].job_id + 1
    for store, job_id in ((shared, waiting), (beta, last)):
        texts = [cause.text for cause in Operator(store).explain(job_id)]
        assert "all tenants together: 3 of at most 3 run: beta 2, acme 1" in texts
        assert [door.name for door in store.doors("default")][-1] == ALL_TENANTS
    use = Operator(acme).shared_use()
    assert use is not None
    assert (use.limit, use.leased) == (Limit(3), 3)


@on_postgres
def test_an_idle_tenant_takes_no_room_and_is_not_held_back(house: Rooms) -> None:
    acme, beta = tenants(house, "acme", "beta", jobs=0)
    control(house).set_queue_limit(ALL_QUEUES, Limit(5))
    memory = ClaimCursors(time.monotonic)
    wants = ClaimRequest(
        owner="w", lease_seconds=30.0, wants=(QueueDemand("default", 5),), memory=memory
    )
    assert acme.claim(wants) == []
    assert not memory.place("default").held_back
    beta.enqueue([NewJob(task="t")] * 9)
    assert len(beta.claim(ask())) == 5


@on_postgres
def test_who_always_asks_first_leaves_something_to_the_others(house: Rooms) -> None:
    """Whoever ends a job claims again before anybody else can: without a word they would starve."""
    acme, beta = tenants(house, "acme", "beta", jobs=2000)
    control(house).set_queue_limit(ALL_QUEUES, Limit(2))
    running = acme.claim(ask(count=2))
    served: list[Attempt] = []

    def beta_is_served() -> bool:
        finish(acme, running[:1])
        running[:1] = acme.claim(ask(count=1))
        served.extend(beta.claim(ask(count=2)))
        return bool(served)

    wait_until(beta_is_served, "beta is served")
    assert len(served) == 1
    assert len(running) == 1


@on_sqlite
def test_with_sqlite_it_is_refused_beside_tenants(house: Rooms) -> None:
    shared = control(house)
    shared.set_queue_limit(ALL_QUEUES, Limit(3))
    with pytest.raises(Refused, match="lift it first"):
        house.tenancy.create("acme")
    shared.set_queue_limit(ALL_QUEUES, NO_LIMIT)
    house.tenancy.create("acme")
    with pytest.raises(Refused, match="limit each tenant"):
        shared.set_queue_limit(ALL_QUEUES, Limit(3))
    house.inside("acme").set_queue_limit(ALL_QUEUES, Limit(3))
