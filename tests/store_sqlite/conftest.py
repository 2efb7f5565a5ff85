"""Several processes on one SQLite file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from freehold.store.sqlite.database import SqliteDatabase

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 200.0


class Helper:
    """Another process; its output is read line by line."""

    def __init__(self, *command: str, module: str = "tests.store_sqlite.client_process") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", module, *command],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def start(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def result(self) -> list[Any]:
        """Its last line, as JSON, after it has exited with 0."""
        try:
            out, err = self.process.communicate(timeout=DEADLINE_SECONDS)
        finally:
            self.close()
        assert self.process.returncode == 0, err
        assert err == ""
        result: list[Any] = json.loads(out.splitlines()[-1])
        return result

    def kill(self) -> list[str]:
        """SIGKILL; returns the lines that it has printed and that were not read yet."""
        self.process.kill()
        out, _ = self.process.communicate()
        return out.splitlines()

    def close(self) -> None:
        """Kill it and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ValueError):  # its pipes are closed already
            self.process.communicate()


Start = Callable[..., Helper]


@pytest.fixture
def start() -> Iterator[Start]:
    helpers: list[Helper] = []

    def start(*command: str) -> Helper:
        helpers.append(Helper(*command))
        return helpers[-1]

    yield start
    for helper in helpers:
        helper.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(path)
    yield database
    database.close()
