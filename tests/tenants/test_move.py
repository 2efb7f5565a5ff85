"""A tenant moves to another shard: no job is lost or doubled, also when the mover dies."""

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
from tests.tenants.tenant_stores import EAST, TenantStores, add, claim_request

ARRIVE = ["restore", "resume", "end", "clean up"]
FORWARD = ["mark", "pause", "retire", "copy", "switch", *ARRIVE]
BACK = ["mark", *ARRIVE]


@pytest.fixture
def acme(stores: TenantStores) -> TenantStores:
    """A tenant with rows in every table."""
    stores.tenants.create("acme")
    store = stores.store_of("acme")
    for number in range(5):
        add(store, unique_key=f"u{number}", idempotency_key=f"i{number}", tags=("a",))
    for attempt, kind in zip(
        store.claim(claim_request(count=3)), ("SUCCESS", "FAIL", "ERROR"), strict=True
    ):
        key = LeaseKey(attempt.job_id, attempt.token)
        store.append_log("w", [LogChunk(key, None, (NewLogLine(1, "a line", 0.0),))])
        outcome = Outcome(kind=OutcomeKind[kind])
        store.finish("w", [AttemptEnd(attempt, outcome)])
    add(store, target="lane")
    add(store, target="lane", delay_seconds=3600.0)
    add(store, pending=True)
    store.set_queue_limit("mail", Limit(3))
    store.set_key_limit("github:*", Limit(2))
    store.pause_lane("other", "ann", "why", None)
    store.pause_queue("sms", "ann", None, None)
    return stores


def contents(store: Store) -> dict[str, Any]:
    jobs = store.page(JobFilter(limit=1000)).jobs
    return {
        "jobs": jobs,
        "events": [store.events(job.id) for job in jobs],
        "log": [store.read_log(job.id) for job in jobs],
        "queues": store.queues(),
        "keys": store.key_limits(),
        "lanes": store.lanes("", 100),
        "counts": store.counts(),
    }


def move_steps(stores: TenantStores, to: str, timeout_seconds: float = 5.0) -> Iterator[str]:
    directory = Store(stores.control.session())
    return TenantMove(directory, stores.shards, "acme", to, timeout_seconds).steps()


def die_after(stores: TenantStores, to: str, steps: int) -> list[str]:
    """Returns the steps that were done."""
    with closing(move_steps(stores, to)) as move:  # type: ignore[type-var]
        return [next(move) for _ in range(steps)]


def test_a_move_whose_process_died_is_reported_until_it_is_repeated(acme: TenantStores) -> None:
    with closing(move_steps(acme, EAST)) as move:  # type: ignore[type-var]
        while next(move) != "switch":
            assert acme.tenants.interrupted_moves() == [], "a live process moves it"
    (message,) = acme.tenants.interrupted_moves()
    assert message.endswith("run `freehold tenants move acme east`")
    assert list(move_steps(acme, EAST))
    assert acme.tenants.interrupted_moves() == []


def assert_moved(stores: TenantStores, before: dict[str, Any], to: str) -> None:
    """The tenant is complete in this shard, and in no other."""
    tenant = stores.tenants.get("acme")
    assert (tenant.shard, tenant.state, tenant.note) == (to, TenantState.ACTIVE, None)
    assert (tenant.moving_to, tenant.moved_from) == (None, None)
    assert contents(stores.store_of("acme")) == contents(stores.store_in(to, "acme")) == before
    other = stores.shards[HOME_SHARD if to == EAST else EAST]
    assert not other.holds("acme")
    assert not other.is_retired("acme")


@pytest.mark.requirement("S4.2")
def test_everything_is_moved_and_ids_and_tokens_continue(acme: TenantStores) -> None:
    old = acme.store_of("acme").claim(claim_request(count=1))
    acme.store_of("acme").give_back("w", old)
    before = contents(acme.store_of("acme"))
    acme.tenants.move("acme", EAST)
    assert_moved(acme, before, EAST)
    there = acme.store_of("acme")
    newest = max(job.id for job in before["jobs"])
    assert add(there) > newest
    assert add(there, idempotency_key="i4") <= newest
    assert min(attempt.token for attempt in there.claim(claim_request())) > old[0].token


@pytest.mark.parametrize("died_after", range(1, len(FORWARD) + 1))
def test_a_move_that_died_is_continued(acme: TenantStores, died_after: int) -> None:
    before = contents(acme.store_of("acme"))
    assert die_after(acme, EAST, died_after) == FORWARD[:died_after]
    acme.tenants.move("acme", EAST)
    assert_moved(acme, before, EAST)


@pytest.mark.parametrize("died_after", range(1, FORWARD.index("switch") + 1))
def test_a_move_that_died_is_canceled(acme: TenantStores, died_after: int) -> None:
    before = contents(acme.store_of("acme"))
    die_after(acme, EAST, died_after)
    acme.tenants.move("acme", HOME_SHARD)
    assert_moved(acme, before, HOME_SHARD)


@pytest.mark.parametrize("died_after", range(1, len(BACK)))
def test_a_cancellation_that_died_is_continued(acme: TenantStores, died_after: int) -> None:
    before = contents(acme.store_of("acme"))
    die_after(acme, EAST, FORWARD.index("copy") + 1)
    assert die_after(acme, HOME_SHARD, died_after) == BACK[:died_after]
    if died_after < BACK.index("end") + 1:
        with pytest.raises(Refused, match="is moving to home"):
            acme.tenants.move("acme", EAST)
    acme.tenants.move("acme", HOME_SHARD)
    assert_moved(acme, before, HOME_SHARD)
    acme.tenants.move("acme", EAST)
    assert_moved(acme, before, EAST)


def test_a_move_waits_for_running_jobs_and_no_job_starts(acme: TenantStores) -> None:
    store = acme.store_of("acme")
    (attempt,) = store.claim(claim_request(count=1))
    with closing(move_steps(acme, EAST)) as move:  # type: ignore[type-var]
        assert [next(move), next(move)] == ["mark", "pause"]
        assert store.claim(claim_request()) == []
        store.finish("w", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
        list(move)
    assert store.read([attempt.job_id])[attempt.job_id].state == "succeeded"
    assert acme.tenants.get("acme").shard == EAST


def test_a_lost_worker_does_not_prevent_a_move(acme: TenantStores) -> None:
    (attempt,) = acme.store_of("acme").claim(claim_request(count=1, lease_seconds=0.5))
    acme.tenants.move("acme", EAST, timeout_seconds=20.0)
    assert acme.store_of("acme").read([attempt.job_id])[attempt.job_id].lease is None


def test_a_job_that_runs_too_long_undoes_the_move(acme: TenantStores) -> None:
    acme.store_of("acme").claim(claim_request(count=1))
    before = contents(acme.store_of("acme"))
    with pytest.raises(StoreUnavailable, match=r"not moved within 0\.2 s.*undone"):
        acme.tenants.move("acme", EAST, timeout_seconds=0.2)
    assert_moved(acme, before, HOME_SHARD)
    assert acme.store_of("acme").claim(claim_request(count=1))


@pytest.mark.requirement("S4.2")
def test_a_late_process_writes_nothing_to_the_old_shard(acme: TenantStores) -> None:
    """Neither over an old connection, nor over a new one."""
    late, inside = acme.store_in(HOME_SHARD, "acme"), acme.store_of("acme")
    before = contents(late)
    die_after(acme, EAST, FORWARD.index("copy") + 1)
    with pytest.raises(SchemaMissing):
        add(late)
    with pytest.raises(SchemaMissing):
        late.claim(claim_request())
    with pytest.raises(StoreUnavailable, match="being moved to east: try again"):
        add(inside)
    acme.tenants.move("acme", EAST)
    with pytest.raises(SchemaMissing):
        add(late)
    with pytest.raises(SchemaMissing):
        acme.shards[HOME_SHARD].open("acme").migrate()
    assert_moved(acme, before, EAST)
    assert add(inside)


def test_an_operators_pause_moves_with_the_tenant(acme: TenantStores) -> None:
    acme.tenants.pause("acme", "ann", "unpaid")
    tenant = acme.tenants.move("acme", EAST)
    assert (tenant.shard, tenant.state, tenant.note) == (EAST, TenantState.PAUSED, "ann: unpaid")
    assert acme.store_of("acme").claim(claim_request()) == []
    acme.tenants.resume("acme")
    assert acme.store_of("acme").claim(claim_request(count=1))


def test_two_processes_cannot_move_a_tenant_at_once(acme: TenantStores) -> None:
    with closing(move_steps(acme, EAST)) as first:  # type: ignore[type-var]
        next(first)
        with pytest.raises(Refused, match="another move"):
            acme.tenants.move("acme", EAST)
        list(first)
    assert acme.tenants.get("acme").shard == EAST


def test_an_existing_tenant_in_the_target_shard_is_not_overwritten(acme: TenantStores) -> None:
    acme.shards[EAST].create("acme")
    with pytest.raises(TenantExists, match="already has a tenant acme"):
        acme.tenants.move("acme", EAST)
    assert acme.tenants.get("acme").state is TenantState.ACTIVE
    assert acme.store_of("acme").claim(claim_request(count=1))


def test_a_moving_tenant_cannot_be_changed(acme: TenantStores) -> None:
    die_after(acme, EAST, 1)
    for change in (
        lambda: acme.tenants.drop("acme", force=True),
        lambda: acme.tenants.pause("acme", "ann"),
        lambda: acme.tenants.resume("acme"),
    ):
        with pytest.raises(Refused, match="is moving from home to east"):
            change()
    assert acme.tenants.migrate()[0].error == "it is being moved to east"
