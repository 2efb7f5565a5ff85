"""A dashboard on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.browser_client import BrowserClient
from tests.http.api_client import client_on, set_tokens, settings_with


@pytest.fixture
def sqlite_board(tmp_path: Path) -> Iterator[BrowserClient]:
    yield from client_on(str(tmp_path / "jobs.db"), tmp_path, BrowserClient)


@pytest.fixture
def postgres_board(postgres_store_url: str, tmp_path: Path) -> Iterator[BrowserClient]:
    yield from client_on(postgres_store_url, tmp_path, BrowserClient)


@pytest.fixture(params=["sqlite", "postgres"])
def board(request: pytest.FixtureRequest) -> BrowserClient:
    found: BrowserClient = request.getfixturevalue(f"{request.param}_board")
    return found


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return set_tokens(monkeypatch)


@pytest.fixture
def secured(sqlite_board: BrowserClient, tokens: list[str]) -> BrowserClient:
    """With a token of each role."""
    sqlite_board.open(settings_with(sqlite_board.folder, *tokens))
    return sqlite_board
