"""Connections of our own keep their plans; handlers' connections are as their owner left them."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from leasehold.store.postgres.connections import Connections
from leasehold.store.postgres.database import PostgresDatabase
from leasehold.store.postgres.pool import Way

_MODE = "show plan_cache_mode"


def test_ours_keep_their_plans_and_handlers_do_not(database: PostgresDatabase) -> None:
    connections = Connections(database.url)

    async def modes() -> list[Any]:
        found = []
        for pool in (connections.pool_of_loop(), connections.handler_pool_of_loop()):
            async with pool.connection(writes=False) as connection:
                found.append(await (await connection.execute(_MODE)).fetchone())
        await connections.aclose()
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
    way = Way(database.url, ours=True)
    refusal = psycopg.OperationalError("FATAL: unsupported startup parameter: options")
    assert way.is_refused(refusal)
    assert "plan_cache_mode" not in way.info
    assert not way.is_refused(refusal)
    assert not Way(database.url, ours=True).is_refused(psycopg.OperationalError("no route"))
