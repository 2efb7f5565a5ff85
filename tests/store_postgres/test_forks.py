"""A fork while the pool is in use: the child opens its own connections."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import JobFilter

ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("S2.11")
def test_a_child_forked_while_all_connections_are_in_use_does_not_hang(
    database: PostgresDatabase, queue: Store
) -> None:
    output = subprocess.run(
        [sys.executable, "-m", "tests.store_postgres.fork_while_busy", database.url],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    assert output == "0\n"
    assert {job.task for job in queue.page(JobFilter()).jobs} == {"child", "parent"}
