"""Tenants are created, listed, paused, weighted, migrated and dropped; steps can be repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from freehold.errors import BadInput, BadName, BadSettings, Refused, TenantExists, TenantNotFound
from freehold.model.tenant import HOME_SHARD, TenantState
from freehold.store.statements import AsyncSession, Rows, StatementGroup
from freehold.tenants.served_tenants import ServedTenants
from tests.tenants.tenant_stores import EAST, TenantStores, add, claim_request

BAD_NAMES = ["", "Acme", "a-b", "a.b", 'a"b', "a;drop", "1a", "a" * 32, "ä", "a b", "a\0", "../a"]


@pytest.mark.requirement("S4.2")
def test_a_tenant_is_created_listed_and_dropped(stores: TenantStores) -> None:
    acme = stores.tenants.create("acme", weight=2.5, max_slots=3)
    assert (acme.name, acme.shard, acme.state) == ("acme", HOME_SHARD, TenantState.ACTIVE)
    assert (acme.weight, acme.max_slots) == (2.5, 3)
    stores.tenants.create("beta", EAST)
    assert [(tenant.name, tenant.shard) for tenant in stores.tenants.all()] == [
        ("acme", HOME_SHARD),
        ("beta", EAST),
    ]
    assert add(stores.store_of("acme")) == add(stores.store_of("beta")) == 1
    stores.tenants.drop("acme", force=True)
    assert [tenant.name for tenant in stores.tenants.all()] == ["beta"]
    assert not stores.shards[HOME_SHARD].holds("acme")
    stores.tenants.create("acme")
    assert stores.store_of("acme").counts().ready == 0


def test_a_creation_that_died_in_the_middle_is_repeated(stores: TenantStores) -> None:
    stores.shards[HOME_SHARD].create("acme")
    assert stores.tenants.all() == []
    stores.tenants.create("acme")
    with pytest.raises(TenantExists, match="acme exists already"):
        stores.tenants.create("acme")


def test_an_existing_schema_with_jobs_is_not_adopted(stores: TenantStores) -> None:
    stores.shards[HOME_SHARD].create("acme")
    add(stores.store_in(HOME_SHARD, "acme"))
    with pytest.raises(TenantExists, match="with jobs"):
        stores.tenants.create("acme")


def test_a_tenant_with_live_jobs_is_dropped_by_force_only(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    add(stores.store_of("acme"))
    with pytest.raises(Refused, match=r"has live jobs or schedules:.*--force"):
        stores.tenants.drop("acme")
    assert stores.store_of("acme").counts().ready == 1


def test_a_drop_that_died_in_the_middle_is_repeated(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    stores.shards[HOME_SHARD].drop("acme")
    stores.tenants.drop("acme")
    assert stores.tenants.all() == []


@pytest.mark.requirement("S4.2")
def test_jobs_of_a_paused_tenant_are_stored_and_not_claimed(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    stores.tenants.pause("acme", "ann", "unpaid")
    tenant = stores.tenants.get("acme")
    assert (tenant.state, tenant.note) == (TenantState.PAUSED, "ann: unpaid")
    job = add(stores.store_of("acme"))
    assert stores.store_of("acme").claim(claim_request()) == []
    assert stores.tenants.resume("acme")
    assert not stores.tenants.resume("acme")
    assert stores.tenants.get("acme").state is TenantState.ACTIVE
    assert [attempt.job_id for attempt in stores.store_of("acme").claim(claim_request())] == [job]


def test_weights_are_set_and_checked(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    stores.tenants.set_weight("acme", 5, 7)
    tenant = stores.tenants.get("acme")
    assert (tenant.weight, tenant.max_slots) == (5.0, 7)
    for weight, max_slots in ((0, None), (-1, None), (float("nan"), None), (1, 0)):
        with pytest.raises(BadInput, match="give"):
            stores.tenants.set_weight("acme", weight, max_slots)
    assert stores.tenants.get("acme") == tenant


def test_a_failed_migration_of_one_tenant_does_not_stop_the_others(stores: TenantStores) -> None:
    for name in ("acme", "beta", "gone"):
        stores.tenants.create(name)
    stores.shards[HOME_SHARD].drop("beta")
    results = {each.tenant: each for each in stores.tenants.migrate()}
    assert [results[name].error for name in ("acme", "gone")] == [None, None]
    assert results["beta"].error
    assert not stores.shards[HOME_SHARD].holds("beta")


def test_an_unknown_tenant_is_refused_with_similar_names(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    with pytest.raises(TenantNotFound, match=r"'acmee'.*did you mean acme"):
        stores.store_of("acmee").counts()
    with pytest.raises(TenantNotFound, match="tenants create zzz"):
        stores.tenants.get("zzz")


def test_an_unknown_shard_is_refused_with_the_known_ones(stores: TenantStores) -> None:
    with pytest.raises(BadSettings, match=r"'west'.*known are east, home.*FREEHOLD_SHARD_WEST"):
        stores.tenants.create("acme", "west")
    assert stores.tenants.all() == []


@pytest.mark.requirement("S4.2")
def test_names_outside_the_whitelist_reach_no_database(stores: TenantStores) -> None:
    shard = stores.shards[HOME_SHARD]
    for method in (
        stores.tenants.create,
        stores.tenants.open,
        stores.tenants.get,
        stores.tenants.drop,
        shard.open,
        shard.create,
        shard.drop,
        shard.holds,
        shard.is_retired,
        shard.restore,
    ):
        for name in BAD_NAMES:
            with pytest.raises(BadName, match="not a usable name"):
                method(name)


class _PausedBeforeWrite:
    """A control store on which an operator pauses the tenant before each write of a state."""

    def __init__(self, stores: TenantStores) -> None:
        self._stores = stores
        self._inner: AsyncSession = stores.control.async_session()

    def async_session(self) -> Any:
        return self

    async def execute(self, group: StatementGroup) -> list[Rows]:
        if any(each.name == "set_tenant_state" for each in group.statements):
            self._stores.tenants.pause("acme", "ann", "unpaid")
        return await self._inner.execute(group)


def test_a_host_that_degrades_or_heals_a_tenant_does_not_end_a_pause(stores: TenantStores) -> None:
    """The pause comes between the time at which the host has seen the tenant and its write."""
    stores.tenants.create("acme")
    control: Any = _PausedBeforeWrite(stores)

    async def write() -> None:
        served = ServedTenants(control, stores.shards, None)
        await served.degrade("acme", "it is broken")
        await served.heal("acme")
        await stores.control.aclose()

    asyncio.run(write())
    acme = stores.tenants.get("acme")
    assert (acme.state, acme.note) == (TenantState.PAUSED, "ann: unpaid")
