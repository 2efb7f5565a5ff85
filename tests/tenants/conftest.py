"""Tenants on both stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import POSTGRES_VARIABLE
from tests.tenants.rooms import Rooms, rooms


@pytest.fixture(params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rooms]:
    """Two places, and no tenant yet."""
    with rooms(request.param, os.environ[POSTGRES_VARIABLE], tmp_path) as made:
        yield made
