"""The contract also holds for PostgreSQL without our own pipeline: on psycopg's cursors. There the
short form runs a third of it: see tests/conftest.py."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conftest import POSTGRES_VARIABLE
from tests.stores import PostgresUnderTest, SqliteUnderTest, StoreUnderTest, fresh_database


@pytest.fixture(scope="session")
def postgres_on_cursors() -> Iterator[PostgresUnderTest]:
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        under_test = PostgresUnderTest(url, pipelined=False)
        yield under_test
        under_test.close()


@pytest.fixture(params=["sqlite", "postgres", "postgres_on_cursors"])
def store(request: pytest.FixtureRequest) -> Iterator[StoreUnderTest]:
    """Every store, empty, on a clock that stands still."""
    if request.param == "sqlite":
        sqlite = SqliteUnderTest()
        yield sqlite
        sqlite.database.close()
        return
    name = "postgres_under_test" if request.param == "postgres" else request.param
    postgres: PostgresUnderTest = request.getfixturevalue(name)
    postgres.reset()
    yield postgres
