"""Child processes are replaced after a number of jobs, so that leaked memory is returned."""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from freehold import BadSettings, Freehold, TaskGroup, WorkerSettings

tasks = TaskGroup()


@tasks.task(isolation="process")
def pid() -> int:
    return os.getpid()


def pids(folder: Path, jobs: int, **settings: Any) -> list[int]:
    """The process of each job, in the order of the jobs."""
    app = Freehold(str(folder / "jobs.db"))
    app.tasks.add(pid)  # each test has an app of its own
    handles = app.enqueue_many([pid.prepare()] * jobs)
    assert app.run_worker(until_idle=True, **settings) == 0
    found = [handle.read() for handle in handles]
    app.close()
    assert {str(job.state) for job in found} == {"succeeded"}
    return [job.report.result for job in found if job.report is not None]


def test_a_child_that_leaks_is_replaced_after_so_many_jobs(tmp_path: Path) -> None:
    found = pids(tmp_path, 7, concurrency=1, child_max_jobs=3)
    assert [len(list(same)) for _, same in groupby(found)] == [3, 3, 1]
    assert os.getpid() not in found


def test_no_child_of_many_runs_more_jobs_than_allowed(tmp_path: Path) -> None:
    found = pids(tmp_path, 9, concurrency=3, child_max_jobs=2)
    assert max(Counter(found).values()) <= 2


def test_a_child_is_kept_unless_the_setting_asks_otherwise(tmp_path: Path) -> None:
    assert len(set(pids(tmp_path, 5, concurrency=1))) == 1


def test_a_negative_number_of_jobs_is_refused() -> None:
    with pytest.raises(BadSettings, match="child_max_jobs=-1: give 0"):
        WorkerSettings(child_max_jobs=-1)
