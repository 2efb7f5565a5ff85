"""An empty schema on the machine's real clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from tests.conftest import POSTGRES_VARIABLE
from tests.stores import fresh_database

Connect = Callable[[], Connection[Any]]
#: After many jobs, whose deleted rows the claims of the next test would read.
_IS_LARGE = "select pg_relation_size('freehold.job') > 1500000"


@pytest.fixture(scope="session")
def shared_database() -> Iterator[PostgresDatabase]:
    """Migrated once for all tests of this process that do not change its schema."""
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        database = PostgresDatabase(url, pool_size=80)
        database.migrate()
        yield database
        database.close()


@pytest.fixture
def database(shared_database: PostgresDatabase) -> PostgresDatabase:
    """Empty."""
    with psycopg.connect(shared_database.url) as connection:
        # Truncate creates new files for every index of every day, and takes ten times as long.
        for table in ("job", "history", "event", "idempotency", "queue", "throttle"):
            connection.execute(f"delete from freehold.{table}".encode())
        if connection.execute(_IS_LARGE).fetchone() == (True,):
            connection.execute("truncate freehold.job")
    return shared_database


@pytest.fixture
def queue(database: PostgresDatabase) -> Store:
    return Store(database.session())


@pytest.fixture
def connect(database: PostgresDatabase) -> Iterator[Connect]:
    """Other connections, in a transaction as psycopg opens them."""
    opened: list[Connection[Any]] = []

    def connect() -> Connection[Any]:
        opened.append(psycopg.connect(database.url))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
