"""A tenant's database goes on: where the tenant went, and while the directory is away."""

from __future__ import annotations

import asyncio
import os

import psycopg
import pytest

from leasehold.client import Client
from leasehold.clock import VirtualClock
from leasehold.errors import StoreUnavailable
from leasehold.model.job import NewJob
from leasehold.model.tenant import HOME
from leasehold.store.faces import BlockingStore
from leasehold.store.opening import open_database
from leasehold.tenancy.following import TenantDatabase
from leasehold.tenancy.lookup import Lookup
from tests.conftest import POSTGRES_VARIABLE
from tests.stores import fresh_database
from tests.tenants.rooms import EAST, Rooms, add


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_directory_that_is_down_stops_nobody_who_knew_the_way(house: Rooms) -> None:
    house.places[EAST].create("acme")
    clock = VirtualClock()
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        control = open_database(url)
        control.migrate()
        BlockingStore(control.session()).add_tenant("acme", EAST)
        lookup = Lookup(control, lambda: clock.micros / 1e6)
        acme = BlockingStore(TenantDatabase("acme", lookup, house.places).session())
        add(acme)
        control.close()
    clock.advance(3600)
    add(acme)
    assert acme.counts().ready == 2
    stranger = TenantDatabase("beta", lookup, house.places)
    with pytest.raises(StoreUnavailable):
        BlockingStore(stranger.session()).counts()


def test_whoever_listens_hears_also_after_a_move(
    house: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasehold.tenancy.lookup.BELIEVED_SECONDS", 0.05)
    monkeypatch.setattr("leasehold.tenancy.following.BELIEVED_SECONDS", 0.05)
    house.tenancy.create("acme")
    told: list[str | None] = []

    async def story() -> None:
        rang = asyncio.Event()

        def heard(hint: str | None) -> None:
            told.append(hint)
            rang.set()

        database = house.tenancy.open("acme")
        listening = asyncio.create_task(database.listen(heard))
        async with asyncio.timeout(20):
            await rang.wait()
            await asyncio.to_thread(house.tenancy.move, "acme", EAST)
            while None not in told:
                rang.clear()
                await rang.wait()
            while told[-1] is None:
                rang.clear()
                await rang.wait()
            told.clear()
            rang.clear()
            await Client(database).aenqueue([NewJob(task="t")])
            await rang.wait()
        listening.cancel()
        await asyncio.wait([listening])
        await database.aclose()

    asyncio.run(story())
    assert set(told) <= {"+default", ""}
    assert house.tenancy.get("acme").place == EAST


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_callers_transaction_is_waited_for_by_a_move(house: Rooms) -> None:
    """What it enqueued and has not committed yet moves along."""
    house.tenancy.create("acme")
    client = Client(house.tenancy.open("acme"))
    with psycopg.connect(house.urls[HOME]) as connection:
        client.enqueue([NewJob(task="t")], connection)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            house.tenancy.move("acme", EAST, timeout_seconds=0.1)
    house.tenancy.move("acme", EAST)
    assert house.inside("acme").counts().ready == 1
