"""Roles on a real server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conftest import POSTGRES_VARIABLE
from tests.deploy.roles import Roles
from tests.stores import fresh_database


@pytest.fixture(scope="module")
def shared_roles() -> Iterator[Roles]:
    """For all tests of a module that leave the schema as it is."""
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        found = Roles(url)
        try:
            found.set_up()
            yield found
        finally:
            found.close()


@pytest.fixture
def roles(postgres_url: str) -> Iterator[Roles]:
    found = Roles(postgres_url)
    try:
        found.set_up()
        yield found
    finally:
        found.close()
