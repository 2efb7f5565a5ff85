"""A service on each store, whose processes end with its test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.manager.load_app import app
from tests.manager.service import Service
from tests.worker.record import RECORD_VARIABLE


@pytest.fixture
def sqlite_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    yield from service_on(str(tmp_path / "jobs.db"), tmp_path, monkeypatch)


@pytest.fixture
def postgres_service(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Service]:
    yield from service_on(postgres_url, tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> Service:
    found: Service = request.getfixturevalue(f"{request.param}_service")
    return found


def service_on(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    app.url = url
    app.migrate()
    service = Service(app, url, folder)
    monkeypatch.setenv(RECORD_VARIABLE, str(service.record.path))
    try:
        yield service
    finally:
        service.close()
        app.close()
