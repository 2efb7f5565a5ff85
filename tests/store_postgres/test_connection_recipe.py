"""Internal connections keep generic plans; handlers get plain connections."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreUnavailable
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.conninfo import conninfo, unreachable
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pool import ConnectionRecipe, Pool, PooledConnection
from freehold.store.postgres.session import (
    AsyncPipelinedSession,
    AsyncPostgresSession,
    PipelinedSession,
    PostgresSession,
    Statements,
)
from freehold.store.store import AsyncStore, Store

_MODE = "show plan_cache_mode"
#: A statement that is repeated this often is prepared, also by psycopg's cursors.
_REPEATS = 7
_PREPARED = "select count(*) from pg_prepared_statements where statement !~ 'pg_prepared'"


def test_internal_connections_keep_generic_plans_and_handlers_connections_do_not(
    database: PostgresDatabase,
) -> None:
    connections = Connections(database.url)

    async def modes() -> list[Any]:
        found = []
        for pool in (connections.pool_of_loop(), connections.handler_pool_of_loop()):
            async with pool.connection(writes=False) as connection:
                found.append(await (await connection.execute(_MODE)).fetchone())
        connections.close_current_loop()
        return found

    assert asyncio.run(modes()) == [("force_generic_plan",), ("auto",)]
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_MODE).fetchone() == ("force_generic_plan",)
    with connections.handler_pool.connection(writes=False) as connection:
        assert connection.execute(_MODE).fetchone() == ("auto",)
    connections.close()


def test_options_of_the_url_are_kept(database: PostgresDatabase) -> None:
    url = database.url + "&options=-c%20work_mem%3D5MB"
    connections = Connections(url)
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute("show work_mem").fetchone() == ("5MB",)
        assert connection.execute(_MODE).fetchone() == ("force_generic_plan",)
    connections.close()


def test_a_pooler_that_refuses_options_is_connected_to_without_them(
    database: PostgresDatabase,
) -> None:
    recipe = ConnectionRecipe(database.url, internal=True)
    refusal = psycopg.OperationalError("FATAL: unsupported startup parameter: options")
    info = recipe.info
    assert not recipe.drop_options(info, psycopg.OperationalError("no route"))
    assert recipe.drop_options(info, refusal)
    assert "plan_cache_mode" not in recipe.info
    assert recipe.drop_options(info, refusal)  # a connection that was opened at the same time
    assert not recipe.drop_options(recipe.info, refusal)
    with PooledConnection.connect(recipe.info) as connection:
        recipe.set_up(connection)
        assert connection.prepare_threshold is None


#: In a DO block, so that the client does not notice.
_FORGET = "do $$ begin execute 'deallocate all'; end $$"


@pytest.mark.parametrize("kind", [PostgresSession, PipelinedSession])
def test_a_pooler_that_loses_prepared_statements_causes_no_error(
    database: PostgresDatabase, kind: type[PostgresSession]
) -> None:
    connections = Connections(database.url)
    store = Store(kind(connections.pool, Statements("freehold", "1")))
    for _ in range(_REPEATS):
        store.now()
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_PREPARED).fetchone() == (1,)
        connection.execute(_FORGET)
    store.now()
    for _ in range(_REPEATS):
        store.now()
    with connections.pool.connection(writes=False) as connection:
        assert connection.execute(_PREPARED).fetchone() == (0,)
    connections.close()


_ALWAYS = b"""
    create schema if not exists forgetful;
    create or replace function forgetful.clock() returns timestamptz language plpgsql
        as 'begin execute ''execute nothing''; end'
"""


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [(PostgresSession, AsyncPostgresSession), (PipelinedSession, AsyncPipelinedSession)],
)
def test_a_pooler_that_also_refuses_unprepared_statements_is_unavailable_in_the_end(
    database: PostgresDatabase,
    blocking: type[PostgresSession],
    awaited: type[AsyncPostgresSession],
) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(_ALWAYS)
    connections, forgetful = Connections(database.url), Statements("forgetful", "1")

    async def read_clock() -> None:
        try:
            await AsyncStore(awaited(connections.pool_of_loop, forgetful)).now()
        finally:
            connections.close_current_loop()

    with pytest.raises(StoreUnavailable):
        Store(blocking(connections.pool, forgetful)).now()
    with pytest.raises(StoreUnavailable):
        asyncio.run(read_clock())
    connections.close()


@pytest.mark.parametrize("kind", [AsyncPostgresSession, AsyncPipelinedSession])
def test_a_pooler_that_loses_prepared_statements_causes_no_error_on_asyncio(
    database: PostgresDatabase, kind: type[AsyncPostgresSession]
) -> None:
    async def scenario() -> list[Any]:
        connections = Connections(database.url)
        pool = connections.pool_of_loop()
        store = AsyncStore(kind(connections.pool_of_loop, Statements("freehold", "1")))
        found = []
        for _ in range(2):
            for _ in range(_REPEATS):
                await store.now()
            async with pool.connection(writes=False) as connection:
                found.append(await (await connection.execute(_PREPARED)).fetchone())
                await connection.execute(_FORGET)
        connections.close_current_loop()
        return found

    assert asyncio.run(scenario()) == [(1,), (0,)]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql://a@127.0.0.1:9,127.0.0.1:7/x",
            "127.0.0.1:9: Connection refused; 127.0.0.1:7: Connection refused; is the server",
        ),
        ("postgresql:///x?host=/nowhere,/neither", "/nowhere: No such file or directory; /neither"),
    ],
)
def test_each_host_of_a_list_has_its_cause_once(url: str, message: str) -> None:
    with pytest.raises(StoreUnavailable, match=re.escape(message)):
        Pool(url, 1).acquire()


def test_a_list_of_standbys_has_no_primary() -> None:
    errors = [
        f"- host: '{host}', port: '5433', hostaddr: '{host}': connection failed: connection to "
        f'server at "{host}", port 5433 failed: session is read-only'
        for host in ("127.0.0.1", "::1")
    ]
    error = psycopg.OperationalError("\n".join(["read-only", "All failures were:", *errors]))
    assert str(unreachable("postgresql://a,b/x", error)) == (
        "cannot connect to postgresql://a,b/x: none of these hosts is a primary "
        "(session is read-only)"
    )


def test_hosts_of_a_list_get_less_time_to_connect() -> None:
    one, several = conninfo("postgresql://a/x"), conninfo("postgresql://a,b/x")
    assert ("connect_timeout=10" in one, "connect_timeout=3" in several) == (True, True)
    assert "connect_timeout=7" in conninfo("postgresql://a,b/x?connect_timeout=7")
