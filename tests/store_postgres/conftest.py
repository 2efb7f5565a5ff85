"""A schema of its own for each test, on the machine's real clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from leasehold.store.faces import BlockingStore
from leasehold.store.postgres.database import PostgresDatabase

Connect = Callable[[], Connection[Any]]


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(postgres_url, pool_size=80)
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def queue(database: PostgresDatabase) -> BlockingStore:
    return BlockingStore(database.session())


@pytest.fixture
def connect(postgres_url: str) -> Iterator[Connect]:
    """Connections of somebody else, in a transaction as psycopg opens them."""
    opened: list[Connection[Any]] = []

    def connect() -> Connection[Any]:
        opened.append(psycopg.connect(postgres_url))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
