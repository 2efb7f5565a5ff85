"""A tenant moves to another database: nothing is lost, nothing is doubled, whatever dies when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from freehold.errors import Refused, SchemaMissing, StoreUnavailable, TenantExists
from freehold.model.limit import Limit
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.tenant import HOME_SHARD, TenantState
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, JobFilter, LeaseKey, LogChunk, NewLogLine
from freehold.tenants.move import TenantMove
from tests.tenants.rooms import EAST, Rooms, add, ask

FORTH = ["mark", "hold", "lock up", "copy", "flip", "clean up"]
BACK = ["mark", "drop the copy", "let out", "go on", "flip"]


@pytest.fixture
def acme(house: Rooms) -> Rooms:
    """A tenant that has something of everything."""
    house.tenancy.create("acme")
    store = house.inside("acme")
    for number in range(5):
        add(store, unique_key=f"u{number}", idempotency_key=f"i{number}", tags=("a",))
    for attempt, kind in zip(store.claim(ask(count=3)), ("SUCCESS", "FAIL", "ERROR"), strict=True):
        key = LeaseKey(attempt.job_id, attempt.token)
        store.note("w", [LogChunk(key, None, (NewLogLine(1, "said", 0.0),))])
        outcome = Outcome(kind=OutcomeKind[kind])
        store.finish("w", [AttemptEnd(attempt, outcome)])
    add(store, target="lane")
    add(store, target="lane", delay_seconds=3600.0)
    add(store, pending=True)
    store.set_queue_limit("mail", Limit(3))
    store.set_key_limit("github:*", Limit(2))
    store.pause_lane("other", "ann", "why", None)
    store.pause_queue("sms", "ann", None, None)
    return house


def contents(store: Store) -> dict[str, Any]:
    jobs = store.page(JobFilter(limit=1000)).jobs
    return {
        "jobs": jobs,
        "events": [store.events(job.id) for job in jobs],
        "notes": [store.notes(job.id) for job in jobs],
        "queues": store.queues(),
        "keys": store.key_limits(),
        "lanes": store.lanes("", 100),
        "counts": store.counts(),
    }


def moving(house: Rooms, to: str, timeout_seconds: float = 5.0) -> Iterator[str]:
    directory = Store(house.control.session())
    return TenantMove(directory, house.places, "acme", to, timeout_seconds).steps()


def die_after(house: Rooms, to: str, steps: int) -> list[str]:
    """What was done until then."""
    with closing(moving(house, to)) as move:  # type: ignore[type-var]
        return [next(move) for _ in range(steps)]


def arrived(house: Rooms, before: dict[str, Any], at: str) -> None:
    """There it is, whole, and nowhere else."""
    line = house.tenancy.get("acme")
    assert (line.place, line.state, line.note) == (at, TenantState.ACTIVE, None)
    assert (line.moving_to, line.moved_from) == (None, None)
    assert contents(house.inside("acme")) == contents(house.at(at, "acme")) == before
    other = house.places[HOME_SHARD if at == EAST else EAST]
    assert not other.holds("acme")
    assert not other.is_locked_up("acme")


@pytest.mark.requirement("S4.2")
def test_everything_arrives_and_ids_and_tokens_go_on(acme: Rooms) -> None:
    old = acme.inside("acme").claim(ask(count=1))
    acme.inside("acme").release("w", old)
    before = contents(acme.inside("acme"))
    acme.tenancy.move("acme", EAST)
    arrived(acme, before, EAST)
    there = acme.inside("acme")
    newest = max(job.id for job in before["jobs"])
    assert add(there) > newest
    assert add(there, idempotency_key="i4") <= newest
    assert min(attempt.token for attempt in there.claim(ask())) > old[0].token


@pytest.mark.parametrize("died_after", range(1, len(FORTH) + 1))
def test_a_move_that_died_goes_on_where_it_stopped(acme: Rooms, died_after: int) -> None:
    before = contents(acme.inside("acme"))
    assert die_after(acme, EAST, died_after) == FORTH[:died_after]
    acme.tenancy.move("acme", EAST)
    arrived(acme, before, EAST)


@pytest.mark.parametrize("died_after", range(1, FORTH.index("flip") + 1))
def test_a_move_that_died_is_taken_back(acme: Rooms, died_after: int) -> None:
    before = contents(acme.inside("acme"))
    die_after(acme, EAST, died_after)
    acme.tenancy.move("acme", HOME_SHARD)
    arrived(acme, before, HOME_SHARD)


@pytest.mark.parametrize("died_after", range(1, len(BACK)))
def test_taking_it_back_can_die_too(acme: Rooms, died_after: int) -> None:
    before = contents(acme.inside("acme"))
    die_after(acme, EAST, FORTH.index("copy") + 1)
    assert die_after(acme, HOME_SHARD, died_after) == BACK[:died_after]
    with pytest.raises(Refused, match="on its way to"):
        acme.tenancy.move("acme", EAST)
    acme.tenancy.move("acme", HOME_SHARD)
    arrived(acme, before, HOME_SHARD)
    acme.tenancy.move("acme", EAST)
    arrived(acme, before, EAST)


def test_what_runs_is_waited_for_and_nothing_new_starts(acme: Rooms) -> None:
    store = acme.inside("acme")
    (attempt,) = store.claim(ask(count=1))
    with closing(moving(acme, EAST)) as move:  # type: ignore[type-var]
        assert [next(move), next(move)] == ["mark", "hold"]
        assert store.claim(ask()) == []
        store.finish("w", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
        list(move)
    assert store.read([attempt.job_id])[attempt.job_id].state == "succeeded"
    assert acme.tenancy.get("acme").place == EAST


def test_a_lost_worker_does_not_keep_it(acme: Rooms) -> None:
    (attempt,) = acme.inside("acme").claim(ask(count=1, lease_seconds=0.5))
    acme.tenancy.move("acme", EAST, timeout_seconds=20.0)
    assert acme.inside("acme").read([attempt.job_id])[attempt.job_id].lease is None


def test_what_runs_for_too_long_sets_everything_back(acme: Rooms) -> None:
    acme.inside("acme").claim(ask(count=1))
    before = contents(acme.inside("acme"))
    with pytest.raises(StoreUnavailable, match=r"not moved within 0\.2 s.*as before"):
        acme.tenancy.move("acme", EAST, timeout_seconds=0.2)
    arrived(acme, before, HOME_SHARD)
    assert acme.inside("acme").claim(ask(count=1))


@pytest.mark.requirement("S4.2")
def test_whoever_is_late_writes_nothing(acme: Rooms) -> None:
    """Neither with a connection from before, nor by opening it anew."""
    late, inside = acme.at(HOME_SHARD, "acme"), acme.inside("acme")
    before = contents(late)
    die_after(acme, EAST, FORTH.index("copy") + 1)
    with pytest.raises(SchemaMissing):
        add(late)
    with pytest.raises(SchemaMissing):
        late.claim(ask())
    with pytest.raises(StoreUnavailable, match="being moved to east: try again"):
        add(inside)
    acme.tenancy.move("acme", EAST)
    with pytest.raises(SchemaMissing):
        add(late)
    with pytest.raises(SchemaMissing):
        acme.places[HOME_SHARD].open("acme").migrate()
    arrived(acme, before, EAST)
    assert add(inside)


def test_a_persons_pause_goes_along(acme: Rooms) -> None:
    acme.tenancy.pause("acme", "ann", "unpaid")
    line = acme.tenancy.move("acme", EAST)
    assert (line.place, line.state, line.note) == (EAST, TenantState.PAUSED, "ann: unpaid")
    assert acme.inside("acme").claim(ask()) == []
    acme.tenancy.resume("acme")
    assert acme.inside("acme").claim(ask(count=1))


def test_two_cannot_move_it_at_once(acme: Rooms) -> None:
    with closing(moving(acme, EAST)) as first:  # type: ignore[type-var]
        next(first)
        with pytest.raises(Refused, match="under way"):
            acme.tenancy.move("acme", EAST)
        list(first)
    assert acme.tenancy.get("acme").place == EAST


def test_what_is_there_already_is_not_overwritten(acme: Rooms) -> None:
    acme.places[EAST].create("acme")
    with pytest.raises(TenantExists, match="has a tenant acme already"):
        acme.tenancy.move("acme", EAST)
    assert acme.tenancy.get("acme").state is TenantState.ACTIVE
    assert acme.inside("acme").claim(ask(count=1))


def test_while_it_moves_nothing_else_is_done_to_it(acme: Rooms) -> None:
    die_after(acme, EAST, 1)
    for door in (
        lambda: acme.tenancy.drop("acme", force=True),
        lambda: acme.tenancy.pause("acme", "ann"),
        lambda: acme.tenancy.resume("acme"),
    ):
        with pytest.raises(Refused, match="on its way from home to east"):
            door()
    assert acme.tenancy.migrate()[0].trouble == "it is being moved to east"
