"""Connections of our own keep their plans; handlers' connections are as their owner left them."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreUnavailable
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pipeline import PooledConnection
from freehold.store.postgres.pool import ConnectionRecipe
from freehold.store.postgres.session import AsyncPostgresSession, PostgresSession, Statements
from freehold.store.store import AsyncStore, Store

_MODE = "show plan_cache_mode"
#: What comes again is prepared.
_ENOUGH = 2
_PREPARED = "select count(*) from pg_prepared_statements where statement !~ 'pg_prepared'"


def test_ours_keep_their_plans_and_handlers_do_not(database: PostgresDatabase) -> None:
    connections = Connections(database.url)

    async def modes() -> list[Any]:
        found = []
        for pool in (connections.pool_of_loop(), connections.handler_pool_of_loop()):
            async with pool.connection(writes=False) as connection:
                found.append(await (await connection.execute(_MODE)).fetchone())
        connections.close_here()
        return found

    assert asyncio.run(modes()) == [("force_generic_plan",), ("auto",)]
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_MODE).fetchone() == ("force_generic_plan",)
    with connections.handler_pool.connection(writes=False) as connection:
        assert connection.execute(_MODE).fetchone() == ("auto",)
    connections.close()


def test_options_of_the_url_stay(database: PostgresDatabase) -> None:
    url = database.url + "&options=-c%20work_mem%3D5MB"
    connections = Connections(url)
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute("show work_mem").fetchone() == ("5MB",)
        assert connection.execute(_MODE).fetchone() == ("force_generic_plan",)
    connections.close()


def test_a_pooler_that_takes_no_options_is_met_without(database: PostgresDatabase) -> None:
    way = ConnectionRecipe(database.url, ours=True)
    refusal = psycopg.OperationalError("FATAL: unsupported startup parameter: options")
    info = way.info
    assert not way.is_refused(info, psycopg.OperationalError("no route"))
    assert way.is_refused(info, refusal)
    assert "plan_cache_mode" not in way.info
    assert way.is_refused(info, refusal)  # somebody who had begun at the same time
    assert not way.is_refused(way.info, refusal)
    with PooledConnection.connect(way.info) as connection:
        way.arrange(connection)
        assert connection.prepare_threshold is None


#: In a block of its own, so that the client does not notice.
_FORGET = "do $$ begin execute 'deallocate all'; end $$"


def test_a_pooler_that_forgets_what_was_prepared_costs_nobody_an_error(
    database: PostgresDatabase,
) -> None:
    connections = Connections(database.url)
    store = Store(PostgresSession(connections.pool, Statements("freehold", "1")))
    for _ in range(_ENOUGH):
        store.now()
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_PREPARED).fetchone() == (1,)
        connection.execute(_FORGET)
    store.now()
    for _ in range(_ENOUGH):
        store.now()
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_PREPARED).fetchone() == (0,)
    connections.close()


_ALWAYS = b"""
    create schema forgetful;
    create function forgetful.clock() returns timestamptz language plpgsql
        as 'begin execute ''execute nothing''; end'
"""


def test_one_that_forgets_also_what_was_not_prepared_is_left_in_the_end(
    database: PostgresDatabase,
) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(_ALWAYS)
    connections, forgetful = Connections(database.url), Statements("forgetful", "1")

    async def ask() -> None:
        try:
            await AsyncStore(AsyncPostgresSession(connections.pool_of_loop, forgetful)).now()
        finally:
            connections.close_here()

    with pytest.raises(StoreUnavailable):
        Store(PostgresSession(connections.pool, forgetful)).now()
    with pytest.raises(StoreUnavailable):
        asyncio.run(ask())
    connections.close()


def test_the_same_for_asyncio(database: PostgresDatabase) -> None:
    async def scene() -> list[Any]:
        connections = Connections(database.url)
        pool = connections.pool_of_loop()
        store = AsyncStore(
            AsyncPostgresSession(connections.pool_of_loop, Statements("freehold", "1"))
        )
        found = []
        for _ in range(2):
            for _ in range(_ENOUGH):
                await store.now()
            async with pool.connection(writes=False) as connection:
                found.append(await (await connection.execute(_PREPARED)).fetchone())
                await connection.execute(_FORGET)
        connections.close_here()
        return found

    assert asyncio.run(scene()) == [(1,), (0,)]
