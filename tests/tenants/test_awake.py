"""One look at all tenants: who has something to do, and who is broken, which spoils nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from freehold.client import Client
from freehold.model.job import NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.tenant import HOME_SHARD
from freehold.store.shard import Shard, TenantActivity
from freehold.store.types import AttemptEnd
from tests.crowd import wait_until
from tests.tenants.rooms import Rooms, add, ask


def look(place: Shard, *tenants: str) -> list[TenantActivity]:
    async def looking() -> list[TenantActivity]:
        try:
            return await place.awake(tenants)
        finally:
            await place.aclose()

    return asyncio.run(looking())


def has_work(house: Rooms, tenant: str) -> bool:
    (seen,) = look(house.places[HOME_SHARD], tenant)
    assert seen.trouble is None
    return seen.has_work


@pytest.fixture
def acme(house: Rooms) -> Rooms:
    house.tenancy.create("acme")
    assert not has_work(house, "acme")
    return house


@pytest.mark.requirement("S4.2")
def test_a_ready_job_is_something_to_do_until_it_is_claimed(acme: Rooms) -> None:
    add(acme.inside("acme"))
    assert has_work(acme, "acme")
    (attempt,) = acme.inside("acme").claim(ask())
    assert not has_work(acme, "acme")
    acme.inside("acme").finish("w", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
    assert not has_work(acme, "acme")


def test_a_job_that_waits_for_its_time_is_something_when_it_comes(acme: Rooms) -> None:
    add(acme.inside("acme"), delay_seconds=0.4)
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "something to do")


def test_a_lease_that_runs_out_is_something_also_in_a_paused_tenant(acme: Rooms) -> None:
    add(acme.inside("acme"))
    acme.inside("acme").claim(ask(lease_seconds=0.5))
    acme.tenancy.pause("acme", "ann")
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "something to do")


def test_what_is_paused_is_nothing_to_do_until_the_pause_ends(acme: Rooms) -> None:
    store = acme.inside("acme")
    add(store)
    store.pause_queue("default", "ann", None, None)
    assert not has_work(acme, "acme")
    store.pause_queue("default", "ann", None, datetime.now(UTC) + timedelta(seconds=0.4))
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "something to do")


@pytest.mark.requirement("S4.2")
def test_a_broken_tenant_is_told_and_spoils_nobody(house: Rooms) -> None:
    names = ("acme", "beta", "gone", "torn", "zeta")
    for name in ("acme", "beta", "torn", "zeta"):
        house.tenancy.create(name)
    tear(house, "torn")
    add(house.inside("zeta"))
    seen = {each.tenant: each for each in look(house.places[HOME_SHARD], *names)}
    assert [name for name in names if seen[name].trouble] == ["gone", "torn"]
    assert [name for name in names if seen[name].has_work] == ["zeta"]
    assert "job" in str(seen["torn"].trouble)


def tear(house: Rooms, tenant: str) -> None:
    """Its table is dropped behind everybody's back."""
    if house.kind == "postgres":
        with psycopg.connect(house.urls[HOME_SHARD]) as connection:
            connection.execute(f"drop table freehold_t_{tenant}.job".encode())
    else:
        house.places[HOME_SHARD].lock_up(tenant)


def test_whoever_listens_hears_each_tenant_by_name(house: Rooms) -> None:
    for name in ("acme", "beta"):
        house.tenancy.create(name)
    told: list[tuple[str, str | None]] = []

    async def story() -> None:
        rang = asyncio.Event()

        def heard(tenant: str, hint: str | None) -> None:
            told.append((tenant, hint))
            rang.set()

        listening = asyncio.create_task(house.places[HOME_SHARD].listen(lambda: ["acme"], heard))
        async with asyncio.timeout(10):
            await rang.wait()
            rang.clear()
            for name in ("beta", "acme"):
                Client(house.tenancy.open(name)).enqueue([NewJob(task="t")])
            await rang.wait()
        listening.cancel()
        await asyncio.wait([listening])

    asyncio.run(story())
    assert told[0] == ("acme", "")
    assert {tenant for tenant, _ in told} == {"acme"}
    if house.kind == "postgres":
        assert told[1] == ("acme", "+default")


def test_files_of_tenants_are_private(house: Rooms) -> None:
    if house.kind == "postgres":
        return
    house.tenancy.create("acme")
    add(house.inside("acme"))
    files: Sequence[Path] = sorted(Path(house.urls[HOME_SHARD]).parent.glob("jobs.acme.db*"))
    assert files
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
