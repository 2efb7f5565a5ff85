"""A tenant's database works after a move, and while the directory is unreachable."""

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
from tests.tenants.tenant_stores import EAST, TenantStores, add
from tests.tenants.test_move import FORWARD, die_after


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_cached_tenants_stay_usable_while_the_directory_is_down(stores: TenantStores) -> None:
    stores.shards[EAST].create("acme")
    clock = VirtualClock()
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        control = open_database(url)
        control.migrate()
        Store(control.session()).add_tenant("acme", EAST)
        cache = DirectoryCache(control, lambda: clock.micros / 1e6)
        acme = Store(TenantDatabase("acme", cache, stores.shards).session())
        add(acme)
        control.close()
    clock.advance(3600)
    add(acme)
    assert acme.counts().ready == 2
    not_cached = TenantDatabase("beta", cache, stores.shards)
    with pytest.raises(StoreUnavailable):
        Store(not_cached.session()).counts()


def test_notifications_arrive_also_after_a_move(
    stores: TenantStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.tenants.directory_cache.CACHE_SECONDS", 0.05)
    monkeypatch.setattr("freehold.tenants.tenant_database.CACHE_SECONDS", 0.05)
    stores.tenants.create("acme")
    received: list[str | None] = []

    async def scenario() -> None:
        notified = asyncio.Event()

        def on_notification(topic: str | None) -> None:
            received.append(topic)
            notified.set()

        database = stores.tenants.open("acme")
        listening = asyncio.create_task(database.listen(on_notification))
        async with asyncio.timeout(20):
            await notified.wait()
            await asyncio.to_thread(stores.tenants.move, "acme", EAST)
            while None not in received:
                notified.clear()
                await notified.wait()
            while received[-1] is None:
                notified.clear()
                await notified.wait()
            received.clear()
            notified.clear()
            await Client(database).aenqueue([NewJob(task="t")])
            await notified.wait()
        listening.cancel()
        await asyncio.wait([listening])
        await database.aclose()

    asyncio.run(scenario())
    assert set(received) <= {"+default", ""}
    assert stores.tenants.get("acme").shard == EAST


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_move_waits_for_a_callers_transaction(stores: TenantStores) -> None:
    """Jobs that it commits later move along."""
    stores.tenants.create("acme")
    client = Client(stores.tenants.open("acme"))
    with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
        client.enqueue([NewJob(task="t")], connection)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            stores.tenants.move("acme", EAST, timeout_seconds=0.1)
    stores.tenants.move("acme", EAST)
    assert stores.store_of("acme").counts().ready == 1


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize("method", ["get", "aget"])
def test_a_move_canceled_before_the_lookup_is_not_noticed(
    stores: TenantStores, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The statement group finds the schema retired; then the directory has the same shard again."""
    client = _retired(stores)
    _around_the_first_lookup(
        monkeypatch, method, before=lambda: stores.tenants.move("acme", HOME_SHARD)
    )
    _enqueue(client, method)
    assert stores.store_of("acme").counts().ready == 2


@pytest.mark.parametrize("method", ["get", "aget"])
def test_a_second_move_before_the_second_try_raises_the_error_of_a_move(
    stores: TenantStores, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    client = _retired(stores)
    _around_the_first_lookup(
        monkeypatch,
        method,
        before=lambda: stores.tenants.move("acme", HOME_SHARD),
        after=lambda: die_after(stores, EAST, FORWARD.index("retire") + 1),
    )
    with pytest.raises(StoreUnavailable, match="being moved to east: try again"):
        _enqueue(client, method)


@pytest.mark.parametrize("method", ["get", "aget"])
def test_a_schema_that_is_really_missing_raises_schema_missing(
    stores: TenantStores, method: str
) -> None:
    stores.tenants.create("acme")
    client = Client(stores.tenants.open("acme"))
    client.enqueue([NewJob(task="t")])
    stores.shards[HOME_SHARD].drop("acme")
    with pytest.raises(SchemaMissing):
        _enqueue(client, method)


def _retired(stores: TenantStores) -> Client:
    """A client that has cached the tenant's shard; then a mover retires the tenant, and dies."""
    stores.tenants.create("acme")
    client = Client(stores.tenants.open("acme"))
    client.enqueue([NewJob(task="t")])
    die_after(stores, EAST, FORWARD.index("retire") + 1)
    return client


def _around_the_first_lookup(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    before: Callable[[], object],
    after: Callable[[], object] = lambda: None,
) -> None:
    """Runs `before` between a statement group that fails and its lookup, and `after` between the
    lookup and the second try."""
    original: Any = getattr(DirectoryCache, method)

    def get(cache: DirectoryCache, name: str, *, refresh: bool = False) -> Any:
        if not refresh:
            return original(cache, name)
        monkeypatch.setattr(DirectoryCache, method, original)
        before()
        found = original(cache, name, refresh=True)
        after()
        return found

    async def aget(cache: DirectoryCache, name: str, *, refresh: bool = False) -> Any:
        if not refresh:
            return await original(cache, name)
        monkeypatch.setattr(DirectoryCache, method, original)
        await asyncio.to_thread(before)
        found = await original(cache, name, refresh=True)
        await asyncio.to_thread(after)
        return found

    monkeypatch.setattr(DirectoryCache, method, {"get": get, "aget": aget}[method])


def _enqueue(client: Client, method: str) -> None:
    async def awaited() -> None:
        try:
            await client.aenqueue([NewJob(task="t")])
        finally:
            await client.database.aclose()

    if method == "get":
        client.enqueue([NewJob(task="t")])
    else:
        asyncio.run(awaited())
