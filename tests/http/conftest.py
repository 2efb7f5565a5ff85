"""An API on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.desk import TOKENS, Desk, app_on


@pytest.fixture
def sqlite_desk(tmp_path: Path) -> Iterator[Desk]:
    yield from _desk(str(tmp_path / "jobs.db"), tmp_path)


@pytest.fixture
def postgres_desk(postgres_store_url: str, tmp_path: Path) -> Iterator[Desk]:
    yield from _desk(postgres_store_url, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def desk(request: pytest.FixtureRequest) -> Desk:
    found: Desk = request.getfixturevalue(f"{request.param}_desk")
    return found


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A token of each role, as the settings name them."""
    texts = []
    for role, secret in TOKENS.items():
        name = "TOKEN_" + role.upper().replace("@", "_")
        monkeypatch.setenv(name, secret)
        texts.append(f"{role}:env:{name}")
    return texts


def _desk(url: str, folder: Path) -> Iterator[Desk]:
    app = app_on(url)
    app.migrate()
    desk = Desk(app, folder)
    try:
        yield desk
    finally:
        desk.close()
