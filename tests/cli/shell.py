"""Runs commands for the tests: in this process, or in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from freehold.cli import main
from freehold.store.sqlite.database import SqliteDatabase
from tests.stores import SqliteUnderTest, StoreUnderTest


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; nothing else was printed."""
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)


def run(*args: str, env: Mapping[str, str | None] | None = None) -> CommandResult:
    """Runs a command in this process, with an environment that names no store."""
    clean = {"FREEHOLD_URL": None, "DATABASE_URL": None, "FREEHOLD_APP": None, **(env or {})}
    ended = CliRunner().invoke(main, args, prog_name="freehold", env=clean)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return CommandResult(ended.exit_code, ended.stdout, ended.stderr)


def spawn(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> CommandResult:
    """Runs a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "freehold", *args],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    ours = {"FREEHOLD_URL", "DATABASE_URL", "FREEHOLD_APP", "FREEHOLD_SCHEMA"}
    return {**{name: os.environ[name] for name in os.environ if name not in ours}, **(more or {})}


class FileUnderTest(SqliteUnderTest):
    """A file that the command line can open too; it uses the machine's clock."""

    def __init__(self, path: Path) -> None:
        self._sqlite = SqliteDatabase(path)
        StoreUnderTest.__init__(self, "sqlite", self._sqlite)


@dataclass(frozen=True)
class Shell:
    """A store, and the command line on it."""

    url: str
    store: StoreUnderTest

    def __call__(self, *args: str) -> CommandResult:
        return run(*args, "--url", self.url)

    def refused(self, *args: str, code: int) -> str:
        """The one line that a refused command prints; it has changed nothing."""
        before = self.store.everything()
        result = self(*args)
        assert self.store.everything() == before
        return refusal(result, code)


def refusal(result: CommandResult, code: int) -> str:
    assert (result.code, result.out) == (code, ""), result
    assert "Traceback" not in result.err
    lines = result.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("freehold: ")
    return lines[0].removeprefix("freehold: ")
