"""Commands that take long show how far they are: a bar at a terminal, a line a minute in a log."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from freehold.cli.progress import progress
from tests.cli.shell import Said, environment, run, spawn

#: What each shows while it works; the words stand in the bar.
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("migrate",): ("migrating sqlite:///",),
    ("tenants", "migrate"): ("tenants", "1/2", "beta"),
    ("tenants", "move", "acme", "east"): ("moving acme", "done: mark, hold, lock up, copy, flip"),
    ("simulate", "--seeds", "3"): ("seeds", "3/3", "jobs"),
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A store with two tenants, and a place for them to go."""
    (tmp_path / "east").mkdir()
    url = str(tmp_path / "jobs.db")
    for name in ("acme", "beta"):
        assert run("tenants", "create", name, "--url", url).code == 0
    return {
        "FREEHOLD_URL": url,
        "FREEHOLD_PLACE_EAST": str(tmp_path / "east" / "jobs.db"),
        "TERM": "xterm",
        "COLUMNS": "200",
    }


def watched(*words: str, cwd: Path, env: dict[str, str]) -> Said:
    """With a terminal as stderr; what it saw is `err`."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold", *words],
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
    return Said(process.returncode, out.decode(), b"".join(seen).decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_terminal_sees_how_far_it_is(
    words: tuple[str, ...], tmp_path: Path, env: dict[str, str]
) -> None:
    said = watched(*words, cwd=tmp_path, env=env)
    assert said.code == 0, said
    for word in (*COMMANDS[words], "━", "0:00:0"):
        assert word in said.err, said.err
    assert "0:00:0" not in said.out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nobody_else_does(words: tuple[str, ...], tmp_path: Path, env: dict[str, str]) -> None:
    """Not who reads JSON, and no file or pipe, whatever is said about colours."""
    piped = spawn(*words, cwd=tmp_path, env={**env, "FORCE_COLOR": "1"})
    assert (piped.code, piped.err) == (0, "")
    assert "0:00:0" not in piped.out
    told = watched(*words, "--json", cwd=tmp_path, env=env)
    assert told.json


@pytest.mark.parametrize(("quiet", "lines"), [(False, 2), (True, 0)])
def test_in_a_log_a_line_a_minute_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], quiet: bool, lines: int
) -> None:
    seconds = 0.0
    with progress("seeds", 20_000, quiet=quiet, now=lambda: seconds) as tell:
        for done in range(0, 2500, 500):
            tell(done, f"{done * 20:,} jobs", "1 failed" if done > 1500 else "")
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
