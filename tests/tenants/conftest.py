"""Tenants on both stores, and host processes that end with their test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.model.tenant import HOME_SHARD
from tests.conftest import POSTGRES_VARIABLE
from tests.stores import fresh_database
from tests.tenants import host_app
from tests.tenants.host_processes import HostProcesses
from tests.tenants.tenant_stores import EAST, TenantStores, TwoDatabases, open_stores


@pytest.fixture(scope="session")
def two_databases() -> Iterator[TwoDatabases]:
    server = os.environ[POSTGRES_VARIABLE]
    with fresh_database(server) as home, fresh_database(server) as east:
        yield TwoDatabases(home, east)


@pytest.fixture
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The URLs of two shards without tenants. A test can select one kind of store."""
    if getattr(request, "param", "postgres") == "postgres":
        databases: TwoDatabases = request.getfixturevalue("two_databases")
        yield databases.urls
        databases.clean()
        return
    (tmp_path / EAST).mkdir()
    yield {HOME_SHARD: str(tmp_path / "jobs.db"), EAST: str(tmp_path / EAST / "jobs.db")}


@pytest.fixture
def stores(urls: dict[str, str]) -> Iterator[TenantStores]:
    with open_stores(urls) as opened:
        yield opened


@pytest.fixture
def sqlite_hosts(tmp_path: Path) -> Iterator[HostProcesses]:
    hosts = HostProcesses(host_app.app, str(tmp_path / "jobs.db"), tmp_path)
    yield hosts
    hosts.close()


@pytest.fixture
def postgres_hosts(postgres_store_url: str, tmp_path: Path) -> Iterator[HostProcesses]:
    hosts = HostProcesses(host_app.app, postgres_store_url, tmp_path)
    yield hosts
    hosts.close()


@pytest.fixture(params=["sqlite", "postgres"])
def hosts(request: pytest.FixtureRequest) -> HostProcesses:
    found: HostProcesses = request.getfixturevalue(f"{request.param}_hosts")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both kinds of store, unless a test selects one."""
    named = list(metafunc.definition.iter_markers("parametrize"))
    if "urls" in metafunc.fixturenames and not any(mark.args[0] == "urls" for mark in named):
        metafunc.parametrize("urls", ["sqlite", "postgres"], indirect=True)
