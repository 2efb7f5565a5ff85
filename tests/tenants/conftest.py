"""Tenants on both stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from freehold.model.tenant import HOME_SHARD
from tests.conftest import POSTGRES_VARIABLE
from tests.stores import fresh_database
from tests.tenants.rooms import EAST, Rooms, forget_tenants, rooms


@pytest.fixture(scope="session")
def two_databases() -> Iterator[dict[str, str]]:
    """Of one server: as good as two, because nothing can reach from one to the other."""
    server = os.environ[POSTGRES_VARIABLE]
    with ExitStack() as stack:
        yield {name: stack.enter_context(fresh_database(server)) for name in (HOME_SHARD, EAST)}


@pytest.fixture
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of two places, without tenants. For `house`; a test can ask for one store only."""
    if getattr(request, "param", "postgres") == "postgres":
        found: dict[str, str] = request.getfixturevalue("two_databases")
        yield found
        forget_tenants(found)
        return
    (tmp_path / EAST).mkdir()
    yield {HOME_SHARD: str(tmp_path / "jobs.db"), EAST: str(tmp_path / EAST / "jobs.db")}


@pytest.fixture
def house(urls: dict[str, str]) -> Iterator[Rooms]:
    with rooms(urls) as made:
        yield made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both stores, unless a test says which."""
    named = list(metafunc.definition.iter_markers("parametrize"))
    if "urls" in metafunc.fixturenames and not any(mark.args[0] == "urls" for mark in named):
        metafunc.parametrize("urls", ["sqlite", "postgres"], indirect=True)
