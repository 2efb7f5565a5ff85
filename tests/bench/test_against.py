"""scripts/bench core --against: two programs in alternating pairs, also across a rename."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.against import verdict
from tests.tidy.sources import ROOT

SECONDS = 300
_OTHER_NAMES = {"freehold": "copyhold", "Freehold": "Copyhold", "FREEHOLD": "COPYHOLD"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: this tree under another name, then this tree."""
    root = tmp_path / "repository"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", root / "src", ignore=ignored)
    shutil.copytree(ROOT / "bench", root / "bench", ignore=ignored)
    (root / "src" / "freehold").rename(root / "src" / "copyhold")
    for path in (root / "src").rglob("*"):
        if path.is_file():
            text = path.read_text()
            for name, other in _OTHER_NAMES.items():
                text = text.replace(name, other)
            path.write_text(text)
    git(root, "init", "--quiet")
    commit(root, "before the rename")
    shutil.rmtree(root / "src")
    shutil.copytree(ROOT / "src", root / "src", ignore=ignored)
    commit(root, "after the rename")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all", "--force")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    git(root, *identity, "commit", "--quiet", "-m", message)


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def temporary(tmp_path: Path) -> Path:
    return tmp_path / "temporary"


def start(repository: Path, tmp_path: Path, out: Path) -> subprocess.Popen[str]:
    """Compares the two commits. The interpreter is the current one: no package is downloaded."""
    temporary(tmp_path).mkdir()
    words = ["core", "--against", "HEAD~1", "--against-python", sys.executable, "--quick"]
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *words, "--out", str(out)],
        cwd=repository,
        env={
            **os.environ,
            "PYTHONPATH": str(repository / "src"),
            "TMPDIR": str(temporary(tmp_path)),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long_form
def test_programs_are_compared_across_a_rename(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "against.json"
    stdout, stderr = start(repository, tmp_path, out).communicate(timeout=SECONDS)
    assert "Verdict:" in stdout, stderr
    found = json.loads(out.read_text())
    assert found["failures"] == []
    assert shlex.split(found["command"])[:4] == ["scripts/bench", "core", "--against", "HEAD~1"]
    programs = {name: each["package"] for name, each in found["programs"].items()}
    assert programs == {"this": "freehold", "other": "copyhold", "copy": "freehold"}
    assert found["programs"]["other"]["commit"] == git(repository, "rev-parse", "HEAD~1")
    for kind, names in (("pairs", {"other", "this"}), ("control", {"copy", "this"})):
        [pair] = found[kind]
        assert set(pair) == names
        for figures in (pair[name][0] for name in names):
            for phase in ("drain", "awaited", "blocking", "bulk"):
                assert {"rate", "wal_bytes", "buffers", "statements"} <= set(figures[phase])
                assert all(value > 0 for value in figures[phase].values())
    assert "| this: freehold " in stdout
    assert len(git(repository, "worktree", "list").splitlines()) == 1


@pytest.mark.long_form
def test_ctrl_c_removes_processes_worktree_and_files(repository: Path, tmp_path: Path) -> None:
    bench = start(repository, tmp_path, tmp_path / "against.json")
    wait_until(lambda: any(temporary(tmp_path).glob("bench-*/w1.[0-9]*")), bench)  # a worker runs
    assert len(git(repository, "worktree", "list").splitlines()) == 2
    bench.send_signal(signal.SIGINT)
    bench.communicate(timeout=SECONDS)
    assert bench.returncode == 128 + signal.SIGINT
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert list(temporary(tmp_path).iterdir()) == []
    assert processes_of(temporary(tmp_path)) == []


def wait_until(condition: Callable[[], bool], bench: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert bench.poll() is None, bench.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def processes_of(folder: Path) -> list[str]:
    """The command lines that name a file of this folder."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text())
        except OSError:  # it has just ended
            continue
    return [line for line in lines if str(folder) in line]


def figures(rate: float, cost: float) -> list[dict[str, Any]]:
    phase = {"rate": rate, "wal_bytes": cost, "buffers": cost, "statements": cost, "cpu_us": 1.0}
    return [dict.fromkeys(("drain", "awaited", "blocking", "bulk"), phase)]


def judged(rate: float, cost: float, control_rate: float = 1.0) -> dict[str, Any]:
    """The verdict on a program with this rate and cost, beside one that has 1 of each."""
    pair = {"other": figures(1.0, 1.0), "this": figures(rate, cost)}
    control = {"copy": figures(1.0, 1.0), "this": figures(control_rate, 1.0)}
    slow = {"other": figures(1.0, 1.0), "this": figures(0.1, 9.0)}
    document = {"pairs": [pair, slow, pair], "control": [control]}
    return dict(verdict.judge(document)["verdict"])


@pytest.mark.parametrize(
    ("rate", "cost", "control_rate", "passed"),
    [
        (0.98, 1.005, 1.0, True),
        (0.96, 1.0, 1.0, False),
        (0.96, 1.0, 0.98, True),
        (1.0, 1.02, 1.0, False),
    ],
)
def test_the_verdict_compares_medians_with_the_control(
    rate: float, cost: float, control_rate: float, passed: bool
) -> None:
    assert judged(rate, cost, control_rate)["passed"] is passed


def test_the_verdict_names_each_figure_that_missed() -> None:
    assert judged(1.0, 1.02)["missed"][0] == "drain, WAL bytes per job: 1.020, at most 1.01"
    assert judged(0.5, 1.0)["missed"][0] == "drain, 1 process, jobs/s: 0.500, at least 0.970"


def test_a_control_far_from_one_is_reported_as_noise() -> None:
    assert judged(1.0, 1.0, control_rate=0.96)["noisy"] == []
    assert "drain, 1 process, jobs/s" in judged(1.0, 1.0, control_rate=0.9)["noisy"]


def test_a_comparison_without_a_pair_does_not_pass() -> None:
    document: dict[str, Any] = {"pairs": [], "control": []}
    assert verdict.judge(document)["verdict"]["passed"] is False
