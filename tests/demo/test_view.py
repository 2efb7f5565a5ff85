"""The display of the demo in a terminal and in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from freehold.app import Freehold
from freehold.lab.demo.kinds import KINDS
from freehold.lab.demo.load import prepare
from freehold.lab.demo.snapshot import OrphanedJob, Snapshot
from freehold.lab.demo.tasks import define
from freehold.lab.demo.view import LineView, ScreenView, demo_view
from freehold.model.worker_info import LiveWorker
from freehold.store.types import JobCounts
from freehold.telemetry import log
from tests.model.builders import T0


def a_worker(pid: int) -> LiveWorker:
    return LiveWorker(
        owner=f"w{pid}",
        host="here",
        pid=pid,
        concurrency=4,
        queues=("q",),
        tasks=("t",),
        version="1",
        running=3,
        finished=17,
        started_at=T0,
        seen_at=T0,
        expires_at=T0,
    )


SNAPSHOT = Snapshot(
    store="sqlite:///demo.db",
    headline="A worker was killed.",
    ended=30,
    jobs=120,
    alive=3,
    workers=[a_worker(41), a_worker(42)],
    queues=[],
    counts=JobCounts(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    orphans=[
        OrphanedJob(5, "demo.steady", "account-1", "leased by the killed worker", False),
        OrphanedJob(6, "demo.quick", None, "queued, attempt 1", True),
    ],
)


def console(height: int, *, terminal: bool = True) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100, height=height)


def shown(height: int) -> list[str]:
    screen = console(height)
    picture = ScreenView(screen, max_workers=6)
    picture._snapshot = SNAPSHOT
    picture._lines = [screen.render_str(f"line {number}") for number in range(30)]
    lines = screen.render_lines(picture.picture(), pad=False)
    return ["".join(part.text for part in line).rstrip() for line in lines]


@pytest.mark.parametrize("height", [24, 40])
def test_everything_fits_including_the_newest_line(height: int) -> None:
    lines = shown(height)
    assert len(lines) < height
    text = "\n".join(lines)
    for expected in (
        "30 of 120 jobs ended",
        "A worker was killed.",
        "■■■·",
        "starting",
        "demo-accounts",
        "leased by the killed worker",
        "in lane account-1",
        "queued, attempt 1",
        "line 29",
    ):
        assert expected in text


def test_a_pipe_gets_lines_and_the_managers_log() -> None:
    pipe = console(24, terminal=False)
    view = demo_view(pipe, max_workers=6)
    assert isinstance(view, LineView)
    with view:
        log.info("worker process 1 starts")
        view.show(SNAPSHOT)
        view.show(SNAPSHOT)
    log.info("not shown any more")
    assert isinstance(pipe.file, io.StringIO)
    output = pipe.file.getvalue().splitlines()
    progress = "30 of 120 jobs ended; workers: 3; jobs: 1 ready, 4 leased, 2 in backoff, "
    assert [line.partition("  ")[2] for line in output] == [
        "worker process 1 starts",
        progress + "3 behind in a lane",
    ]


@pytest.mark.parametrize("count", [60, 61, 500, 20_000])
def test_the_load_has_exactly_the_requested_number_of_jobs(count: int) -> None:
    app = Freehold("unused.db")
    define(app, KINDS.values())
    jobs = prepare(app, count)
    assert len(jobs) == count
    lanes = [job.target for job in jobs if job.target is not None]
    assert len(lanes) == pytest.approx(count / 4, rel=0.1)
    assert max(lanes.count(target) for target in set(lanes)) < 20
