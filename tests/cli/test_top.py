"""`freehold top`: queues, workers, throughput and running jobs in one picture."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console, ConsoleDimensions

from freehold.cli.top_view import Frame, JobRate, top_view
from freehold.model.job_log import Progress
from freehold.model.worker_info import Heartbeat, LiveWorker
from freehold.store.types import JobCounts, LeaseKey, LogChunk
from tests.cli.shell import Shell, environment, spawn

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = JobCounts(0, 0, 0, 0, 0, 0, 0, 0)


def worker(owner: str = "w1", finished: int = 0, seen: float = 0.0, **fields: Any) -> LiveWorker:
    """Started ten seconds before NOW, heard `seen` seconds after it."""
    at = NOW + timedelta(seconds=seen)
    return LiveWorker(
        owner=owner,
        host="box",
        pid=1,
        concurrency=10,
        tasks=(),
        version="1",
        finished=finished,
        started_at=NOW - timedelta(seconds=10),
        seen_at=at,
        expires_at=at + timedelta(seconds=30),
        **{"queues": ("default",), **fields},
    )


def frame(*workers: LiveWorker, after: float = 0.0) -> Frame:
    return Frame(
        store="sqlite:///jobs.db",
        queues=[],
        counts=NOTHING,
        workers=list(workers),
        leased=(),
        now=NOW + timedelta(seconds=after),
    )


def drawn(what: Frame, pace: JobRate, columns: int = 120, rows: int | None = None) -> str:
    console = Console(width=columns, file=None, record=True, force_terminal=False)
    screen = None if rows is None else ConsoleDimensions(columns, rows)
    with console.capture() as captured:
        console.print(top_view(what, pace, screen))
    return captured.get()


def test_one_picture_shows_what_happens_now(shell: Shell) -> None:
    for _ in range(3):
        shell.store.add(queue="mail")
    shell.store.store.pause_queue("reports", "ann", "deploy", None)
    job_id = shell.store.add()
    attempt = shell.store.claim_one()
    key = LeaseKey(attempt.job_id, attempt.token)
    shell.store.store.start("w1", [key])
    shell.store.store.note("w1", [LogChunk(key, Progress(3, 10, "pages\x1b[2J"), ())])
    beat = Heartbeat(
        owner="w1",
        host="box",
        pid=42,
        concurrency=10,
        running=1,
        queues=("default",),
        tasks=("t",),
        version="1",
    )
    shell.store.store.beat(beat, 30.0)
    said = shell("top", "--once")
    assert said.code == 0
    for words in (
        "1 worker, 1 of 10 slots",
        "jobs/s",
        "oldest",
        "Queues",
        "Workers",
        "mail",
        "reports",
        "deploy",
        "box",
        "Running jobs",
        "running",
        "3 of 10",
    ):
        assert words in said.out, words
    assert f"{job_id}" in said.out.split("Running jobs")[1]
    assert "\x1b" not in said.out


def test_an_empty_store_is_a_picture_too(shell: Shell) -> None:
    out = shell("top", "--once").out
    assert "0 workers, 0 of 0 slots" in out
    assert "no workers" in out
    assert "no running jobs" in out


def test_the_pace_is_what_ended_between_two_beats() -> None:
    pace = JobRate()
    assert pace.take(frame(worker(finished=50))) == 5.0  # heard once: the mean since its start
    assert pace.take(frame(worker(finished=50), after=1.0)) == 5.0  # no news
    assert pace.take(frame(worker(finished=90, seen=2.0), after=2.0)) == 20.0
    assert pace.take(frame(worker(finished=90, seen=4.0), after=4.0)) == 0.0
    assert list(pace.course) == [5.0, 5.0, 20.0, 0.0]


def test_a_silent_worker_ends_nothing() -> None:
    pace = JobRate()
    assert pace.take(frame(worker(finished=50), worker("w2", finished=10))) == 6.0
    assert pace.take(frame(worker(finished=50), worker("w2", finished=10), after=20.0)) == 0.0


def test_the_course_is_drawn_as_bars() -> None:
    pace = JobRate()
    for number, finished in enumerate((0, 10, 40)):
        pace.take(frame(worker(finished=finished, seen=number), after=number))
    assert "▁" in drawn(frame(worker(finished=40, seen=2.0), after=2.0), pace)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("rows", [24, 30, 50])
def test_many_workers_fit_on_the_screen(rows: int, columns: int) -> None:
    """Each on a line of its own, however many queues it has; and so the rest is seen too."""
    queues = ("mail", "reports", "accounts", "a-queue-with-a-long-name")
    many = [worker(f"w{number}-0a99bb43", queues=queues) for number in range(100)]
    lines = drawn(frame(*many), JobRate(), columns, rows).splitlines()
    assert len(lines) <= rows
    shown = [line for line in lines if "0/10" in line]
    assert len(shown) >= 3
    assert all(line.startswith("w") for line in shown)
    assert any(f"{100 - len(shown)} more are not shown" in line for line in lines)
    assert any("Running jobs" in line for line in lines)


def test_a_terminal_sees_it_change_until_it_is_interrupted(sqlite_shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold", "top", "--interval", "0.1", "--url", sqlite_shell.url],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment({"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}),
        # Whoever runs the tests in the background of a shell has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen = b""
    while seen.count(b"Running jobs") < 3:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while True:  # until it has put the terminal right and closed it
        try:
            if not os.read(ours, 65536):
                break
        except OSError:
            break
    _, error = process.communicate(timeout=120)
    os.close(ours)
    assert (process.returncode, error) == (0, b"")


def test_a_pipe_gets_one_picture(sqlite_shell: Shell, tmp_path: Any) -> None:
    said = spawn("top", "--url", sqlite_shell.url, cwd=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.out.count("Running jobs") == 1
