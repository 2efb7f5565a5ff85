"""The project on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.django.shop_project import Project


@pytest.fixture
def postgres_project(postgres_url: str) -> Iterator[Project]:
    """Connections of the ORM stay open for a while, so that they can break."""
    project = Project(postgres_url, SHOP_CONN_MAX_AGE="600")
    yield project
    project.app.close()


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres_project")
        return
    project = Project(str(tmp_path / "shop.db"))
    yield project
    project.app.close()
