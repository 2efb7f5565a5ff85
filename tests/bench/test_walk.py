"""scripts/walk: the functions of one job, in order, without what a process does only once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tidy.sources import ROOT

SECONDS = 300
#: Some functions of each walk, in their order.
PASSED = {
    "plain": ["Task.enqueue", "Claimer.run", "Runner.run", "finish"],
    "cancel": ["JobHandle.cancel", "Finisher.submit", "finish"],
    "http": ["dispatch", "check_role", "Client.aenqueue"],
}
ONCE = {"Worker.run", "PostgresDatabase.migrate", "SqliteDatabase.migrate", "Freehold.__init__"}


@pytest.mark.parametrize(
    ("walk", "store"),
    [
        ("plain", "postgres"),
        ("http", "sqlite"),
        pytest.param("cancel", "sqlite", marks=pytest.mark.long_form),
        pytest.param("plain", "sqlite", marks=pytest.mark.long_form),
        pytest.param("cancel", "postgres", marks=pytest.mark.long_form),
        pytest.param("http", "postgres", marks=pytest.mark.long_form),
    ],
)
def test_a_walk_lists_the_functions_in_order(walk: str, store: str, postgres_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.walk", walk, f"--store={store}", f"--dsn={postgres_url}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, sums = done.stdout.splitlines()
    functions = [line.split()[-1] for line in lines]
    assert [name for name in functions if name in PASSED[walk]] == PASSED[walk]
    assert not ONCE & set(functions)
    assert sums.startswith(f"{walk}, {store}: this ")
    assert f" {len(functions)} functions" in sums
