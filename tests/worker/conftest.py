"""An app on each store, and worker processes that end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.worker import lease_renewer
from tests.worker.fleet import Fleet
from tests.worker.fleet_app import app
from tests.worker.lodging import lodged
from tests.worker.workshop import Workshop


@pytest.fixture
def sqlite_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    yield from lodged(Fleet, app, str(tmp_path / "jobs.db"), tmp_path, monkeypatch)


@pytest.fixture
def postgres_fleet(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    yield from lodged(Fleet, app, postgres_store_url, tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", "postgres"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    found: Fleet = request.getfixturevalue(f"{request.param}_fleet")
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def workshop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workshop]:
    """A worker inside this process, on each store."""
    if request.param == "sqlite":
        yield from _workshop(str(tmp_path / "jobs.db"))
    else:
        yield from _workshop(request.getfixturevalue("postgres_store_url"))


@pytest.fixture
def unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper does not look at leases for a while: what they lost is not noticed in time."""
    monkeypatch.setattr(lease_renewer, "SHOW_SECONDS", 600.0)


@pytest.fixture
def postgres_workshop(postgres_store_url: str) -> Iterator[Workshop]:
    yield from _workshop(postgres_store_url)


@pytest.fixture
def sqlite_workshop(tmp_path: Path) -> Iterator[Workshop]:
    yield from _workshop(str(tmp_path / "jobs.db"))


def _workshop(url: str) -> Iterator[Workshop]:
    app = Freehold(url)
    app.migrate()
    try:
        yield Workshop(app)
    finally:
        app.close()
