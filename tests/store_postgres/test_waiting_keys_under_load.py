"""64 callers, retries, dead workers and cut connections: never two waiting jobs of one key."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psycopg
import pytest

from freehold.model.job import Job
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.types import JobFilter
from tests.concurrency import DEADLINE_SECONDS, wait_until
from tests.sizes import sized
from tests.waiting_load import WaitingLoad

CALLERS = 64
CALLS = sized("WAITING_CALLS", short=8, long=400)
TWICE = """
select waiting_key from freehold.job where waiting_key is not null and stage <> 'h'
group by waiting_key having count(*) > 1
"""
#: A connection in the middle of a statement of a caller or a worker.
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  and state in ('active', 'idle in transaction') and query like %s
order by random() limit 1
"""


def run_load(load: WaitingLoad, cut: Any = None) -> None:
    """Until all callers are done; then until what was asked for last has run."""
    threads = load.threads()
    with ThreadPoolExecutor(len(threads)) as pool:
        futures = [pool.submit(work) for work in threads]
        callers = futures[: load.callers]
        try:
            while wait(callers, timeout=0.02).not_done:
                if any(future.done() and future.exception() for future in futures):
                    break
                if cut is not None:
                    cut()
            last = load.ask_once_more()
            wait_until(
                lambda: last <= load.ran or any(f.done() and f.exception() for f in futures),
                "the last call of each key has run",
            )
        finally:
            load.working.clear()
    for future in futures:
        future.result(DEADLINE_SECONDS)


def check(load: WaitingLoad) -> None:
    before: int | None = None
    jobs: list[Job] = []
    while True:
        page = load.store.page(JobFilter(limit=1000, before=before))
        jobs += page.jobs
        if (before := page.next) is None:
            break
    for job in jobs:
        seen = load.claimed.get(job.id, {job.args})
        assert seen == {job.args}, f"job {job.id} was replaced in its worker's hands"
    assert len(jobs) > len(load.claimed) / 2


@pytest.mark.requirement("N4")
@pytest.mark.parametrize("seed", range(sized("WAITING_SEEDS", short=1, long=5)))
def test_64_callers_never_make_two_waiting_jobs_of_one_key(
    database: PostgresDatabase, seed: int
) -> None:
    load = WaitingLoad(database, seed, CALLERS, CALLS, cuts=3)
    chance = random.Random(seed)
    with psycopg.connect(database.url, autocommit=True) as admin:

        def cut() -> None:
            assert admin.execute(TWICE).fetchall() == []
            like = chance.choice(["%waiting_key%", "%throttle%", "%lease_token%"])
            admin.execute(CUT, (like,))

        run_load(load, cut)
    check(load)


@pytest.mark.requirement("N4")
def test_64_callers_of_one_file_never_make_two_waiting_jobs_of_one_key(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "jobs.db")
    load = WaitingLoad(database, 1, CALLERS, CALLS)
    run_load(load)
    assert load.cut == 0
    check(load)
    database.close()
