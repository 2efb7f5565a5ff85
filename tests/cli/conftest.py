"""The command line on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import FileUnderTest, Shell
from tests.stores import PostgresUnderTest


@pytest.fixture
def sqlite_shell(tmp_path: Path) -> Iterator[Shell]:
    store = FileUnderTest(tmp_path / "jobs.db")
    yield Shell(str(tmp_path / "jobs.db"), store)
    store.database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest) -> Shell:
    if request.param == "sqlite":
        shell: Shell = request.getfixturevalue("sqlite_shell")
        return shell
    postgres: PostgresUnderTest = request.getfixturevalue("postgres_under_test")
    postgres.reset()
    return Shell(postgres._postgres.url, postgres)
