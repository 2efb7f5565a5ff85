"""Eight processes on one file: never "database is locked", no job twice, nobody starves."""

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
def test_eight_processes_do_every_job_once_while_others_produce(
    database: SqliteDatabase, path: Path, start: Start
) -> None:
    store = Store(database.session())
    ids = {each.id for each in store.enqueue([NewJob(task="t")] * JOBS)}
    workers = [start("work", str(path), f"w{i}") for i in range(PROCESSES)]
    producers = [start("produce", str(path), str(MORE_JOBS)) for _ in range(PRODUCERS)]
    for helper in [*workers, *producers]:
        assert helper.says() == "ready"
    for helper in [*workers, *producers]:
        helper.go()

    ids.update(job_id for producer in producers for job_id in producer.answer())
    shares = [worker.answer() for worker in workers]

    done = Counter(job_id for share in shares for job_id in share)
    assert set(done.values()) == {1}
    waiting = frozenset({State.QUEUED})
    left = {job.id for job in store.page(JobFilter(states=waiting, limit=1000)).jobs}
    assert set(done) | left == ids, "the workers may end before the last job is produced"
    # Writers take turns. How evenly depends on the machine; that none is left out does not.
    assert min(len(share) for share in shares) > 0, [len(share) for share in shares]


@pytest.mark.requirement("S0.13")
def test_eight_processes_are_all_the_first_to_open_a_file(tmp_path: Path, start: Start) -> None:
    helpers = [start("open", str(tmp_path), str(FILES)) for _ in range(PROCESSES)]
    for helper in helpers:
        assert helper.says() == "ready"
    for helper in helpers:
        helper.go()
    answers = [helper.answer() for helper in helpers]
    for ids in zip(*answers, strict=True):
        assert sorted(ids) == list(range(1, PROCESSES + 1))
