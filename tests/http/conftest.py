"""An API on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.api_client import ApiClient, app_on, set_tokens


@pytest.fixture
def sqlite_client(tmp_path: Path) -> Iterator[ApiClient]:
    yield from _client(str(tmp_path / "jobs.db"), tmp_path)


@pytest.fixture
def postgres_client(postgres_store_url: str, tmp_path: Path) -> Iterator[ApiClient]:
    yield from _client(postgres_store_url, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def client(request: pytest.FixtureRequest) -> ApiClient:
    found: ApiClient = request.getfixturevalue(f"{request.param}_client")
    return found


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return set_tokens(monkeypatch)


def _client(url: str, folder: Path) -> Iterator[ApiClient]:
    app = app_on(url)
    app.migrate()
    client = ApiClient(app, folder)
    try:
        yield client
    finally:
        client.close()
