"""The fixture freehold_queue, in a run of pytest that finds it by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.requirement("N19")
_APP = """
from contextlib import nullcontext
from freehold import Freehold

app = Freehold("never.db", lifespan=lambda: nullcontext("real"))

@app.task
def greet(ctx, name):
    return f"{ctx.deps} {name}"
"""
_TESTS = """
from shop import greet

def test_a_job_runs(freehold_queue):
    job = greet.enqueue("you")
    freehold_queue.assert_enqueued(greet, "you")
    assert freehold_queue.run().succeeded == 1
    assert job.result() == "{deps} you"
"""
_DEPS = """
import pytest

@pytest.fixture
def freehold_deps():
    return "fake"
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-c", "pytest.ini", *options]
    return subprocess.run(
        command,
        cwd=folder,
        env={**env, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_fixture_has_the_app_of_the_settings_and_the_deps_of_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(_APP)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfreehold_app = shop:app\n")
    (tmp_path / "test_real.py").write_text(_TESTS.format(deps="real"))
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "conftest.py").write_text(_DEPS)
    (fakes / "test_fake.py").write_text(_TESTS.format(deps="fake"))
    done = run(tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "never.db").exists()


def test_without_an_app_the_error_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(_APP)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_real.py").write_text(_TESTS.format(deps="real"))
    done = run(tmp_path)
    assert done.returncode == 1
    assert "set freehold_app = module:attribute in the settings of pytest" in done.stdout
