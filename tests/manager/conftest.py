"""A service on each store; its processes end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.manager.load_app import app
from tests.manager.service import Service
from tests.worker.app_processes import app_with_processes


@pytest.fixture
def sqlite_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    yield from app_with_processes(Service, app, str(tmp_path / "jobs.db"), tmp_path, monkeypatch)


@pytest.fixture
def postgres_service(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Service]:
    yield from app_with_processes(Service, app, postgres_store_url, tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> Service:
    found: Service = request.getfixturevalue(f"{request.param}_service")
    return found
