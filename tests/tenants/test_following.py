"""A tenant's database goes on: where the tenant went, and while the directory is away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from freehold.client import Client
from freehold.clock import VirtualClock
from freehold.errors import SchemaMissing, StoreUnavailable
from freehold.model.job import NewJob
from freehold.model.tenant import HOME_SHARD
from freehold.store.open import open_database
from freehold.store.store import Store
from freehold.tenants.directory_cache import DirectoryCache
from freehold.tenants.tenant_database import TenantDatabase
from tests.conftest import POSTGRES_VARIABLE
from tests.stores import fresh_database
from tests.tenants.rooms import EAST, Rooms, add
from tests.tenants.test_move import FORTH, die_after


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_directory_that_is_down_stops_nobody_who_knew_the_way(house: Rooms) -> None:
    house.places[EAST].create("acme")
    clock = VirtualClock()
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        control = open_database(url)
        control.migrate()
        Store(control.session()).add_tenant("acme", EAST)
        lookup = DirectoryCache(control, lambda: clock.micros / 1e6)
        acme = Store(TenantDatabase("acme", lookup, house.places).session())
        add(acme)
        control.close()
    clock.advance(3600)
    add(acme)
    assert acme.counts().ready == 2
    stranger = TenantDatabase("beta", lookup, house.places)
    with pytest.raises(StoreUnavailable):
        Store(stranger.session()).counts()


def test_whoever_listens_hears_also_after_a_move(
    house: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.tenants.directory_cache.CACHE_SECONDS", 0.05)
    monkeypatch.setattr("freehold.tenants.tenant_database.BELIEVED_SECONDS", 0.05)
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
    with psycopg.connect(house.urls[HOME_SHARD]) as connection:
        client.enqueue([NewJob(task="t")], connection)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            house.tenancy.move("acme", EAST, timeout_seconds=0.1)
    house.tenancy.move("acme", EAST)
    assert house.inside("acme").counts().ready == 1


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize("face", ["line", "aline"])
def test_a_move_taken_back_before_the_lookup_is_not_noticed(
    house: Rooms, monkeypatch: pytest.MonkeyPatch, face: str
) -> None:
    """The batch finds the schema locked up; then the directory says that the tenant lives there."""
    client = _locked_up(house)
    _around_the_first_lookup(
        monkeypatch, face, before=lambda: house.tenancy.move("acme", HOME_SHARD)
    )
    _enqueue(client, face)
    assert house.inside("acme").counts().ready == 2


@pytest.mark.parametrize("face", ["line", "aline"])
def test_a_second_move_before_the_second_try_is_told_as_a_move(
    house: Rooms, monkeypatch: pytest.MonkeyPatch, face: str
) -> None:
    client = _locked_up(house)
    _around_the_first_lookup(
        monkeypatch,
        face,
        before=lambda: house.tenancy.move("acme", HOME_SHARD),
        after=lambda: die_after(house, EAST, FORTH.index("lock up") + 1),
    )
    with pytest.raises(StoreUnavailable, match="being moved to east: try again"):
        _enqueue(client, face)


@pytest.mark.parametrize("face", ["line", "aline"])
def test_a_schema_that_is_really_missing_is_told_as_such(house: Rooms, face: str) -> None:
    house.tenancy.create("acme")
    client = Client(house.tenancy.open("acme"))
    client.enqueue([NewJob(task="t")])
    house.places[HOME_SHARD].drop("acme")
    with pytest.raises(SchemaMissing):
        _enqueue(client, face)


def _locked_up(house: Rooms) -> Client:
    """A client that knows where the tenant lives; then a mover locks the tenant up, and dies."""
    house.tenancy.create("acme")
    client = Client(house.tenancy.open("acme"))
    client.enqueue([NewJob(task="t")])
    die_after(house, EAST, FORTH.index("lock up") + 1)
    return client


def _around_the_first_lookup(
    monkeypatch: pytest.MonkeyPatch,
    face: str,
    before: Callable[[], object],
    after: Callable[[], object] = lambda: None,
) -> None:
    """What happens between a batch that fails, its lookup, and its second try."""
    original: Any = getattr(DirectoryCache, face)

    def line(lookup: DirectoryCache, name: str, *, anew: bool = False) -> Any:
        if not anew:
            return original(lookup, name)
        monkeypatch.setattr(DirectoryCache, face, original)
        before()
        found = original(lookup, name, anew=True)
        after()
        return found

    async def aline(lookup: DirectoryCache, name: str, *, anew: bool = False) -> Any:
        if not anew:
            return await original(lookup, name)
        monkeypatch.setattr(DirectoryCache, face, original)
        await asyncio.to_thread(before)
        found = await original(lookup, name, anew=True)
        await asyncio.to_thread(after)
        return found

    monkeypatch.setattr(DirectoryCache, face, {"line": line, "aline": aline}[face])


def _enqueue(client: Client, face: str) -> None:
    async def awaited() -> None:
        try:
            await client.aenqueue([NewJob(task="t")])
        finally:
            await client.database.aclose()

    if face == "line":
        client.enqueue([NewJob(task="t")])
    else:
        asyncio.run(awaited())
