"""Long commands show their progress: a bar in a terminal, a line a minute in a log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from freehold.cli.progress import progress
from tests.cli.shell import CommandResult, environment, run, spawn

#: The texts that each shows in its progress bar.
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("migrate",): ("migrating sqlite:///",),
    ("tenants", "migrate"): ("tenants", "1/2", "beta"),
    ("tenants", "move", "acme", "east"): ("moving acme", "done: mark, pause, retire, copy, switch"),
    ("simulate", "--seeds", "1"): ("seeds", "1/1", "jobs"),
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A store with two tenants, and a shard to move them to."""
    (tmp_path / "east").mkdir()
    url = str(tmp_path / "jobs.db")
    for name in ("acme", "beta"):
        assert run("tenants", "create", name, "--url", url).code == 0
    return {
        "FREEHOLD_URL": url,
        "FREEHOLD_SHARD_EAST": str(tmp_path / "east" / "jobs.db"),
        "TERM": "xterm",
        "COLUMNS": "200",
    }


def watched(*args: str, cwd: Path, env: dict[str, str]) -> CommandResult:
    """Runs a command with a terminal as stderr; `err` is what the terminal received."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold", *args],
        cwd=cwd,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    seen: list[bytes] = []
    watching = threading.Thread(target=lambda: seen.extend(iter(lambda: _read(ours), b"")))
    watching.start()
    out, _ = process.communicate(timeout=120)
    watching.join(60)
    os.close(ours)
    return CommandResult(process.returncode, out.decode(), b"".join(seen).decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_terminal_shows_a_progress_bar(
    args: tuple[str, ...], tmp_path: Path, env: dict[str, str]
) -> None:
    result = watched(*args, cwd=tmp_path, env=env)
    assert result.code == 0, result
    for text in (*COMMANDS[args], "━", "0:00:0"):
        assert text in result.err, result.err
    assert "0:00:0" not in result.out


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_pipes_and_json_output_show_no_progress_bar(
    args: tuple[str, ...], tmp_path: Path, env: dict[str, str]
) -> None:
    piped = spawn(*args, cwd=tmp_path, env={**env, "FORCE_COLOR": "1"})
    assert (piped.code, piped.err) == (0, "")
    assert "0:00:0" not in piped.out
    assert watched(*args, "--json", cwd=tmp_path, env=env).json


@pytest.mark.parametrize(("quiet", "lines"), [(False, 2), (True, 0)])
def test_a_log_gets_a_line_of_progress_a_minute(
    capsys: pytest.CaptureFixture[str], quiet: bool, lines: int
) -> None:
    seconds = 0.0
    with progress("seeds", 20_000, quiet=quiet, now=lambda: seconds) as report:
        for done in range(0, 2500, 500):
            report(done, f"{done * 20:,} jobs", "1 failed" if done > 1500 else "")
            seconds += 30
    found = capsys.readouterr()
    assert found.out == ""
    assert (
        found.err.splitlines()
        == [
            "seeds: 1,000 of 20,000 (20,000 jobs)",
            "seeds: 2,000 of 20,000 (40,000 jobs; 1 failed)",
        ][:lines]
    )
