"""Eight processes on one file: no "database is locked", no job twice, none starves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from freehold.model.job import NewJob
from freehold.model.state import State
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.store.types import JobFilter
from tests.sizes import sized
from tests.store_sqlite.conftest import Start

PROCESSES = 8
PRODUCERS = 2
JOBS = sized("JOBS", short=4000, long=20_000)
MORE_JOBS = 500
FILES = 25


@pytest.mark.requirement("S0.2", "S0.13")
def test_eight_processes_run_every_job_once_while_others_produce(
    database: SqliteDatabase, path: Path, start: Start
) -> None:
    store = Store(database.session())
    ids = {each.id for each in store.enqueue([NewJob(task="t")] * JOBS)}
    workers = [start("work", str(path), f"w{i}") for i in range(PROCESSES)]
    producers = [start("produce", str(path), str(MORE_JOBS)) for _ in range(PRODUCERS)]
    for helper in [*workers, *producers]:
        assert helper.read_line() == "ready"
    for helper in [*workers, *producers]:
        helper.start()

    ids.update(job_id for producer in producers for job_id in producer.result())
    shares = [worker.result() for worker in workers]

    done = Counter(job_id for share in shares for job_id in share)
    assert set(done.values()) == {1}
    waiting = frozenset({State.QUEUED})
    left = {job.id for job in store.page(JobFilter(states=waiting, limit=1000)).jobs}
    assert set(done) | left == ids, "the workers may end before the last job is produced"
    # Writers queue up. The machine decides how even the shares are, but none is empty.
    assert min(len(share) for share in shares) > 0, [len(share) for share in shares]


@pytest.mark.requirement("S0.13")
def test_eight_processes_can_open_a_new_file_at_once(tmp_path: Path, start: Start) -> None:
    helpers = [start("open", str(tmp_path), str(FILES)) for _ in range(PROCESSES)]
    for helper in helpers:
        assert helper.read_line() == "ready"
    for helper in helpers:
        helper.start()
    results = [helper.result() for helper in helpers]
    for ids in zip(*results, strict=True):
        assert sorted(ids) == list(range(1, PROCESSES + 1))
