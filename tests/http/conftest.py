"""An API on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.api_client import ApiClient, client_on, set_tokens


@pytest.fixture
def sqlite_client(tmp_path: Path) -> Iterator[ApiClient]:
    yield from client_on(str(tmp_path / "jobs.db"), tmp_path, ApiClient)


@pytest.fixture
def postgres_client(postgres_store_url: str, tmp_path: Path) -> Iterator[ApiClient]:
    yield from client_on(postgres_store_url, tmp_path, ApiClient)


@pytest.fixture(params=["sqlite", "postgres"])
def client(request: pytest.FixtureRequest) -> ApiClient:
    found: ApiClient = request.getfixturevalue(f"{request.param}_client")
    return found


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return set_tokens(monkeypatch)
