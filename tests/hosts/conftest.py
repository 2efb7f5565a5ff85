"""Tenants on each store, and host processes that end with their test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts import crew_app
from tests.hosts.crew import Crew


@pytest.fixture
def sqlite_crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(crew_app.app, str(tmp_path / "jobs.db"), tmp_path)
    yield crew
    crew.close()


@pytest.fixture
def postgres_crew(postgres_store_url: str, tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(crew_app.app, postgres_store_url, tmp_path)
    yield crew
    crew.close()


@pytest.fixture(params=["sqlite", "postgres"])
def crew(request: pytest.FixtureRequest) -> Crew:
    found: Crew = request.getfixturevalue(f"{request.param}_crew")
    return found
