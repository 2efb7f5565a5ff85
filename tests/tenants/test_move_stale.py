"""A process with an outdated row of the directory never uses a copy that is still to arrive: what
it writes there would be lost when the move is canceled."""

from __future__ import annotations

import pytest

from freehold.errors import Refused, SchemaMissing, StoreUnavailable, TenantExists
from freehold.model.tenant import HOME_SHARD, TenantState
from freehold.store.postgres import schema_copy
from freehold.store.store import Store
from freehold.tenants.tenants import Tenants
from tests.tenants.tenant_stores import EAST, TenantStores, add, claim_request
from tests.tenants.test_move import FORWARD, die_after, move_steps

ALL_SHARDS = (HOME_SHARD, EAST)
ARRIVED = FORWARD.index("restore") + 1


@pytest.fixture
def stale(stores: TenantStores) -> Store:
    """Of a process that has cached the tenant's row in home. Since then it has moved to east."""
    stores.tenants.create("acme")
    store = Store(Tenants(stores.control, stores.shards).open("acme").session())
    add(store)
    stores.tenants.move("acme", EAST)
    return store


def usable_in(stores: TenantStores) -> list[str]:
    """The shards that have the tenant under its own name."""
    found = []
    for shard in ALL_SHARDS:
        try:
            stores.store_in(shard, "acme").counts()
        except SchemaMissing:
            continue
        found.append(shard)
    return found


@pytest.mark.requirement("S4.2", "S2.1")
def test_no_job_is_accepted_by_a_copy_before_the_switch(stores: TenantStores, stale: Store) -> None:
    die_after(stores, HOME_SHARD, FORWARD.index("copy") + 1)
    with pytest.raises(StoreUnavailable, match="being moved to home"):
        add(stale)


@pytest.mark.requirement("S4.2", "S2.1")
def test_no_job_is_claimed_from_a_copy_before_the_switch(
    stores: TenantStores, stale: Store
) -> None:
    """It would run again after a cancellation."""
    die_after(stores, HOME_SHARD, FORWARD.index("copy") + 1)
    with pytest.raises(StoreUnavailable, match="being moved to home"):
        stale.claim(claim_request())


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_no_job_is_accepted_by_half_a_copy(
    stores: TenantStores, stale: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get the id of another job, and the move could never end."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(schema_copy, "copy", die)
    with pytest.raises(KeyboardInterrupt):
        stores.tenants.move("acme", HOME_SHARD)
    with pytest.raises(StoreUnavailable, match="being moved to home"):
        add(stale)


@pytest.mark.requirement("S4.2", "S2.1")
def test_no_job_of_a_stale_process_is_lost_at_any_step(stores: TenantStores, stale: Store) -> None:
    """It is accepted where the tenant is, or refused; and the tenant is usable in one shard."""
    accepted = [1]
    for step in move_steps(stores, HOME_SHARD):
        assert len(usable_in(stores)) <= 1, step
        if FORWARD.index(step) < FORWARD.index("retire"):
            continue
        try:
            accepted.append(add(stale))
        except StoreUnavailable:
            assert FORWARD.index(step) < ARRIVED
    assert usable_in(stores) == [HOME_SHARD]
    assert len(accepted) == 1 + len(FORWARD) - FORWARD.index("restore")
    assert sorted(stores.store_of("acme").read(accepted)) == accepted


@pytest.mark.parametrize("died_after", range(1, FORWARD.index("switch") + 1))
def test_a_canceled_move_leaves_nothing_that_a_stale_process_can_use(
    stores: TenantStores, stale: Store, died_after: int
) -> None:
    die_after(stores, HOME_SHARD, died_after)
    for step in move_steps(stores, EAST):
        assert usable_in(stores) in ([], [EAST]), step
    job = add(stale)  # finds nothing in home, and reads the directory again
    assert sorted(stores.store_in(EAST, "acme").read([1, job])) == [1, job]
    assert not stores.shards[HOME_SHARD].holds("acme")


@pytest.mark.requirement("S4.2")
def test_a_move_cannot_be_canceled_after_the_switch(stores: TenantStores, stale: Store) -> None:
    """The new shard may have accepted jobs since."""
    die_after(stores, HOME_SHARD, FORWARD.index("switch") + 1)
    with pytest.raises(Refused, match="is moving to home: finish that move first"):
        stores.tenants.move("acme", EAST)
    with pytest.raises(Refused, match="is moving from east to home: finish the move with"):
        stores.tenants.pause("acme", "ann")
    stores.tenants.move("acme", HOME_SHARD)
    assert stale.counts().ready == 1


@pytest.mark.requirement("S4.2")
def test_the_old_data_is_dropped_only_if_the_new_is_usable(
    stores: TenantStores, stale: Store
) -> None:
    die_after(stores, HOME_SHARD, FORWARD.index("switch") + 1)
    stores.shards[HOME_SHARD].drop_retired("acme")
    with pytest.raises(SchemaMissing):
        stores.tenants.move("acme", HOME_SHARD)
    assert stores.tenants.get("acme").state is TenantState.MOVING
    assert stores.shards[EAST].is_retired("acme")


def test_a_cancellation_needs_only_the_shard_of_the_tenant(
    stores: TenantStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target may be the reason for it."""
    stores.tenants.create("acme")
    die_after(stores, EAST, FORWARD.index("copy") + 1)
    with monkeypatch.context() as down:

        def fail(_: str) -> None:
            raise StoreUnavailable("east is down")

        down.setattr(stores.shards[EAST], "move_lock", fail)
        down.setattr(stores.shards[EAST], "drop_retired", fail)
        with pytest.raises(StoreUnavailable, match="east is down"):
            stores.tenants.move("acme", HOME_SHARD)
    tenant = stores.tenants.get("acme")
    assert (tenant.state, tenant.shard, tenant.moved_from) == (TenantState.ACTIVE, HOME_SHARD, EAST)
    assert add(stores.store_of("acme"))
    stores.tenants.move("acme", HOME_SHARD)
    assert not stores.shards[EAST].holds("acme")


@pytest.mark.parametrize("locked", ALL_SHARDS)
def test_a_slow_mover_in_either_shard_refuses_the_next(
    stores: TenantStores, stale: Store, locked: str
) -> None:
    """Its clean-up would drop the copy of the next move."""
    with (
        stores.shards[locked].move_lock("acme"),
        pytest.raises(Refused, match="another move from or to"),
    ):
        stores.tenants.move("acme", HOME_SHARD)
    with stores.shards[EAST].move_lock("acme"), pytest.raises(Refused, match="another move"):
        stores.tenants.drop("acme", force=True)
    assert stores.tenants.get("acme").state is TenantState.ACTIVE


def test_the_row_of_the_directory_is_read_after_locking(
    stores: TenantStores, stale: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another move ends between the first lookup and the lock."""
    east = stores.shards[EAST]
    lock = east.move_lock

    def late(name: str) -> object:
        monkeypatch.setattr(east, "move_lock", lock)
        stores.tenants.move("acme", HOME_SHARD)
        return lock(name)

    monkeypatch.setattr(east, "move_lock", late)
    with pytest.raises(Refused, match="another process has just moved acme to home"):
        stores.tenants.drop("acme", force=True)
    assert stale.counts().ready == 1


def test_a_tenant_created_in_the_target_shard_meanwhile_is_not_overwritten(
    stores: TenantStores,
) -> None:
    stores.tenants.create("acme")
    add(stores.store_of("acme"))
    die_after(stores, EAST, FORWARD.index("retire") + 1)
    stores.shards[EAST].create("acme")
    with pytest.raises(TenantExists, match="already has a tenant acme"):
        stores.tenants.move("acme", EAST)
    stores.tenants.move("acme", HOME_SHARD)
    assert stores.store_of("acme").counts().ready == 1
    assert stores.shards[EAST].holds("acme")
