"""An app on each store, and worker processes that end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.lab.devpostgres import DevPostgres
from freehold.worker import lease_renewer
from tests.testing.virtual_app import VirtualApp
from tests.worker.app_processes import app_with_processes
from tests.worker.examples import Open, opened_examples
from tests.worker.fleet import Fleet
from tests.worker.fleet_app import app
from tests.worker.local_worker import LocalWorker, opened


@pytest.fixture
def sqlite_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    yield from app_with_processes(Fleet, app, str(tmp_path / "jobs.db"), tmp_path, monkeypatch)


@pytest.fixture
def postgres_fleet(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    yield from app_with_processes(Fleet, app, postgres_store_url, tmp_path, monkeypatch)


@pytest.fixture
def own_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Fleet, DevPostgres]]:
    """A server of its own, which the test may stop."""
    with DevPostgres(settings={"fsync": "off"}) as server:
        for fleet in app_with_processes(Fleet, app, server.url, tmp_path, monkeypatch):
            yield fleet, server


@pytest.fixture
def virtual() -> VirtualApp:
    return VirtualApp()


@pytest.fixture(params=["sqlite", "postgres"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    found: Fleet = request.getfixturevalue(f"{request.param}_fleet")
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def local_worker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorker]:
    """A worker inside this process, on each store."""
    if request.param == "sqlite":
        yield from opened(str(tmp_path / "jobs.db"))
    else:
        yield from opened(request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def slow_renewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The renewer does not check the leases for a while, so a lost one is not noticed in time."""
    monkeypatch.setattr(lease_renewer, "MARK_RUNNING_SECONDS", 600.0)


@pytest.fixture
def postgres_local_worker(postgres_store_url: str) -> Iterator[LocalWorker]:
    yield from opened(postgres_store_url)


@pytest.fixture
def sqlite_local_worker(tmp_path: Path) -> Iterator[LocalWorker]:
    yield from opened(str(tmp_path / "jobs.db"))


@pytest.fixture(params=["sqlite", "postgres"])
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Open]:
    """Opens modules of the folder `examples`, on each store."""

    def url() -> str:
        if request.param == "sqlite":
            return str(tmp_path / "jobs.db")
        return str(request.getfixturevalue("postgres_store_url"))

    yield from opened_examples(url, tmp_path, monkeypatch)
