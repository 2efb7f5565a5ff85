"""Apps on every store: a file, memory, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold import Freehold
from tests.client.helpers import url_of
from tests.stores import PostgresUnderTest


@pytest.fixture
def postgres_app(postgres_under_test: PostgresUnderTest) -> Iterator[Freehold]:
    postgres_under_test.reset()
    app = Freehold(url_of(postgres_under_test))
    yield app
    app.close()


@pytest.fixture
def sqlite_app(tmp_path: Path) -> Iterator[Freehold]:
    app = Freehold(str(tmp_path / "jobs.db"))
    yield app
    app.close()


@pytest.fixture(params=["sqlite", "sqlite-memory", "postgres"])
def app(request: pytest.FixtureRequest) -> Iterator[Freehold]:
    """The same app on each store."""
    if request.param == "sqlite-memory":
        memory = Freehold("sqlite://:memory:")
        yield memory
        memory.close()
    else:
        yield request.getfixturevalue(f"{request.param}_app")
