"""Child processes import the app first, and their logs look like the worker's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from freehold import Freehold
from freehold.errors import BadSettings
from freehold.model.state import State
from freehold.store.types import JobFilter

#: As a project with Django has it: its tasks can be imported only after the app's module has run.
_APP = """
import prepared
prepared.is_set_up = True
from shop import app
"""
_TASKS = """
import asyncio, logging
from freehold import Freehold, Retry
import prepared

if not prepared.is_set_up:
    raise RuntimeError("apps are not loaded yet")
app = Freehold("shop.db")
log = logging.getLogger("shop")
SOON = Retry(max_attempts=2, base_seconds=0)

@app.task
def in_thread():
    log.warning("one")

@app.task
async def in_loop():
    await asyncio.to_thread(log.warning, "two")

@app.task(isolation="process", retry=SOON)
def in_child():
    log.info("three")
    logging.getLogger("shop.bills").warning("four\\nlines")
"""
#: A deploy that is copied while a child imports it.
_HALF_COPIED = """
import multiprocessing, pathlib
if multiprocessing.parent_process() is not None:
    try:
        pathlib.Path("copied").touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        raise ImportError("half a module")
"""


def project(folder: Path, app: str = _APP) -> None:
    (folder / "prepared.py").write_text("is_set_up = False\n")
    (folder / "site_app.py").write_text(app)
    (folder / "shop.py").write_text(_TASKS)


def freehold(folder: Path, *arguments: str) -> str:
    """Runs the command in the folder. Returns what it logged."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("FREEHOLD")}
    command = [sys.executable, "-m", "freehold", *arguments, "--app", "site_app:app"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stderr


def run(folder: Path, tasks: Sequence[str], *arguments: str) -> str:
    for task in tasks:
        freehold(folder, "enqueue", task)
    return freehold(folder, "worker", "--until-idle", *arguments)


def states(folder: Path) -> list[tuple[State, int]]:
    app = Freehold(str(folder / "shop.db"))
    try:
        return [(job.state, job.attempt) for job in app.operator.jobs(JobFilter()).jobs]
    finally:
        app.close()


def of_shop(log: str) -> list[dict[str, Any]]:
    lines = [msgspec.json.decode(line) for line in log.splitlines()]
    return [
        {name: value for name, value in line.items() if name != "at"}
        for line in lines
        if line["logger"].startswith("shop")
    ]


def test_logs_of_handlers_carry_their_job_in_threads_coroutines_and_children(
    tmp_path: Path,
) -> None:
    project(tmp_path)
    log = run(tmp_path, ["shop.in_thread", "shop.in_loop", "shop.in_child"], "--log-format", "json")
    assert states(tmp_path) == [(State.SUCCEEDED, 1)] * 3, log
    expected = [
        ("warning", "shop", "one", 1, "shop.in_thread"),
        ("warning", "shop", "two", 2, "shop.in_loop"),
        ("info", "shop", "three", 3, "shop.in_child"),
        ("warning", "shop.bills", "four\nlines", 3, "shop.in_child"),
    ]
    lines = sorted(
        of_shop(log), key=lambda line: [each[2] for each in expected].index(line["message"])
    )
    assert lines == [
        {
            "level": level,
            "logger": logger,
            "message": text,
            "job": job,
            "task": task,
            "attempt": 1,
            "queue": "default",
        }
        for level, logger, text, job, task in expected
    ]


def test_text_logs_of_a_child_name_their_job_and_keep_to_one_line(tmp_path: Path) -> None:
    project(tmp_path)
    log = run(tmp_path, ["shop.in_child"], "--log-level", "warning")
    (line,) = log.splitlines()
    assert line.endswith("warning shop.bills: job 1 of shop.in_child, attempt 1: four\\nlines")


@pytest.mark.requirement("S2.6")
def test_an_import_that_fails_in_a_child_is_an_error_of_the_attempt(tmp_path: Path) -> None:
    project(tmp_path, _HALF_COPIED + _APP)
    log = run(tmp_path, ["shop.in_child"])
    assert states(tmp_path) == [(State.SUCCEEDED, 2)], log
    assert "ImportError: half a module" in log


def test_a_local_function_cannot_be_a_process_task() -> None:
    app = Freehold(":memory:")

    def local() -> None: ...

    with pytest.raises(BadSettings, match="move it to the top of its module"):
        app.task(isolation="process")(local)
    assert app.task(local).name.endswith("local")
    assert len(app.tasks.names) == 1
