"""`freehold top`: queues, workers, throughput and running jobs on one screen."""

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
NOTHING = JobCounts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def worker(owner: str = "w1", finished: int = 0, seen: float = 0.0, **fields: Any) -> LiveWorker:
    """Started ten seconds before NOW, with a heartbeat `seen` seconds after it."""
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
        pause=None,
        workers=list(workers),
        leased=(),
        now=NOW + timedelta(seconds=after),
    )


def drawn(shown: Frame, rate: JobRate, columns: int = 120, rows: int | None = None) -> str:
    console = Console(width=columns, file=None, record=True, force_terminal=False)
    screen = None if rows is None else ConsoleDimensions(columns, rows)
    with console.capture() as captured:
        console.print(top_view(shown, rate, screen))
    return captured.get()


def test_one_screen_shows_queues_workers_and_running_jobs(shell: Shell) -> None:
    for _ in range(3):
        shell.store.add(queue="mail")
    shell.store.store.pause_queue("reports", "ann", "deploy", None)
    job_id = shell.store.add()
    attempt = shell.store.claim_one()
    key = LeaseKey(attempt.job_id, attempt.token)
    assigned = shell.store.add(task="not.started")
    shell.store.claim_one()
    shell.store.store.mark_running("w1", [key])
    shell.store.store.append_log("w1", [LogChunk(key, Progress(3, 10, "pages\x1b[2J"), ())])
    heartbeat = Heartbeat(
        owner="w1",
        host="box",
        pid=42,
        concurrency=10,
        running=1,
        queues=("default",),
        tasks=("t",),
        version="1",
    )
    shell.store.store.heartbeat(heartbeat, 30.0)
    result = shell("top", "--once")
    assert result.code == 0
    for expected in (
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
        "1 assigned, not yet running",
        "3 of 10",
    ):
        assert expected in result.out, expected
    running = result.out.split("Running jobs")[1]
    assert f"\n {job_id} " in running
    assert "not.started" not in running, assigned
    assert "\x1b" not in result.out


def test_an_empty_store_is_shown(shell: Shell) -> None:
    out = shell("top", "--once").out
    assert "0 workers, 0 of 0 slots" in out
    assert "no workers" in out
    assert "no running jobs" in out


def test_a_worker_without_running_jobs_is_idle_and_has_a_short_name() -> None:
    idle, busy = worker("w1a2b-0a99bb43"), worker("w3c4d-1234abcd", running=1)
    out = drawn(frame(idle, busy), JobRate(), columns=80)
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert " idle " in lines["w1a2b-0a99"]
    assert " working " in lines["w3c4d-1234"]


def test_the_rate_is_the_number_ended_between_two_heartbeats() -> None:
    rate = JobRate()
    assert rate.update(frame(worker(finished=50))) == 5.0  # seen once: the mean since its start
    assert rate.update(frame(worker(finished=50), after=1.0)) == 5.0  # no new heartbeat
    assert rate.update(frame(worker(finished=90, seen=2.0), after=2.0)) == 20.0
    assert rate.update(frame(worker(finished=90, seen=4.0), after=4.0)) == 0.0
    assert list(rate.history) == [5.0, 5.0, 20.0, 0.0]


def test_a_silent_worker_counts_as_finishing_nothing() -> None:
    rate = JobRate()
    assert rate.update(frame(worker(finished=50), worker("w2", finished=10))) == 6.0
    assert rate.update(frame(worker(finished=50), worker("w2", finished=10), after=20.0)) == 0.0


def test_the_history_of_rates_is_drawn_as_bars() -> None:
    rate = JobRate()
    for number, finished in enumerate((0, 10, 40)):
        rate.update(frame(worker(finished=finished, seen=number), after=number))
    assert "▁" in drawn(frame(worker(finished=40, seen=2.0), after=2.0), rate)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("rows", [24, 30, 50])
def test_many_workers_fit_on_the_screen(rows: int, columns: int) -> None:
    """Each worker takes one line, however many queues it has, and the other parts stay visible."""
    queues = ("mail", "reports", "accounts", "a-queue-with-a-long-name")
    many = [worker(f"w{number}-0a99bb43", queues=queues) for number in range(100)]
    lines = drawn(frame(*many), JobRate(), columns, rows).splitlines()
    assert len(lines) <= rows
    shown = [line for line in lines if "0/10" in line]
    assert len(shown) >= 3
    assert all(line.startswith("w") for line in shown)
    assert any(f"{100 - len(shown)} more not shown" in line for line in lines)
    assert any("Running jobs" in line for line in lines)


def test_a_terminal_is_updated_until_an_interrupt(sqlite_shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold", "top", "--interval", "0.1", "--url", sqlite_shell.url],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environment({"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}),
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    seen = b""
    while seen.count(b"Running jobs") < 3:
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while True:  # until it has restored and closed the terminal
        try:
            if not os.read(ours, 65536):
                break
        except OSError:
            break
    _, error = process.communicate(timeout=120)
    os.close(ours)
    assert (process.returncode, error) == (0, b"")


def test_a_pipe_gets_one_screen(sqlite_shell: Shell, tmp_path: Any) -> None:
    result = spawn("top", "--url", sqlite_shell.url, cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out.count("Running jobs") == 1
