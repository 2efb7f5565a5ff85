"""A bulk retry whose worker is killed, which is stopped half way and resumed: each job once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freehold import AuditFilter, BulkOperation, BulkState, Freehold, JobFilter, State
from freehold.clock import system_micros
from freehold.store.verbs import bulk
from tests.cli.shell import FileUnderTest, environment
from tests.sizes import is_long, sized
from tests.stores import PostgresUnderTest, StoreUnderTest

#: In the short form each chunk has one job, so that there are as many steps to be killed in.
JOBS = sized("BULK_JOBS", short=600, long=200_000)
LIMIT_SECONDS = 120.0 if not is_long() else 3600.0

_FAILED_ON_POSTGRES = """
insert into freehold.history (id, created_at, finished_at, token, priority, attempt, max_attempts,
    lost_attempts, state, queue, task, finished_by, args)
select nextval('freehold.job_id'), clock_timestamp(), clock_timestamp(), 1, 0, 1, 1, 0, 'failed',
    'default', 't', 'w', '{{"n": 1}}' from generate_series(1, {count})
"""
_FAILED_ON_SQLITE = """
with recursive number (n) as (select 1 union all select n + 1 from number where n < {count})
insert into history (id, created_at, finished_at, token, priority, attempt, max_attempts,
    lost_attempts, state, queue, task, finished_by, args)
select n, {now}, {now}, 1, 0, 1, 1, 0, 'failed', 'default', 't', 'w', '{{"n": 1}}' from number
"""


@pytest.fixture(params=["sqlite", "postgres"])
def failed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Freehold, StoreUnderTest]]:
    """A store with failed jobs only; it uses the clock of its database."""
    count = min(JOBS, 2000) if request.param == "sqlite" else JOBS
    if not is_long():
        monkeypatch.setattr(bulk, "CHUNK", 1)
    store: StoreUnderTest
    if request.param == "sqlite":
        store, url = FileUnderTest(tmp_path / "jobs.db"), str(tmp_path / "jobs.db")
        store.store.now()
        store.sql(_FAILED_ON_SQLITE.format(count=count, now=system_micros()))
    else:
        url = request.getfixturevalue("postgres_url")
        store = PostgresUnderTest(url)
        store.sql("delete from freehold.test_clock")
        store.sql(_FAILED_ON_POSTGRES.format(count=count))
    app = Freehold(url)
    # The jobs themselves must not run: they would leave the set.
    app.operator.pause_queue("*", "test")
    yield app, store
    app.close()
    store.close() if isinstance(store, PostgresUnderTest) else store.database.close()


@contextmanager
def worker(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold", "worker", "--url", url],
        cwd=folder,
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def until_left(app: Freehold, operation: int, left: int) -> BulkOperation:
    """Waits until so many jobs are left at most."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while (found := app.operator.bulk.show(operation)).left > left:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


@pytest.mark.requirement("N16")
@pytest.mark.timeout(2 * LIMIT_SECONDS)
def test_a_bulk_retry_that_is_killed_stopped_and_resumed_retries_each_job_once(
    failed: tuple[Freehold, StoreUnderTest], tmp_path: Path
) -> None:
    app, store = failed
    every = JobFilter(states=frozenset({State.FAILED}))
    started = app.operator.bulk.start("retry", every, by="ann", reason="the server is back")
    jobs = started.jobs
    with worker(app.url, tmp_path):
        until_left(app, started.id, jobs * 3 // 4)
    killed = app.operator.bulk.show(started.id)
    assert 0 < killed.left < jobs, "it was killed in between"
    with worker(app.url, tmp_path):
        until_left(app, started.id, jobs // 2)
        stopped = app.operator.bulk.stop(started.id, by="bob")
        assert 0 < stopped.left < killed.left
        retried = store.sql("select count(*) from {s}event where kind = 'retried_by_hand'")
        assert retried == [(stopped.done,)]
        assert app.operator.bulk.show(started.id) == stopped
        app.operator.bulk.resume(started.id, by="bob")
        done = until_left(app, started.id, 0)
    assert (done.state, done.done, done.changed, done.refused) == (BulkState.DONE, jobs, 0, {})
    per_job = store.sql(
        "select n, count(*) from (select count(*) as n from {s}event "
        "where kind = 'retried_by_hand' group by job_id) x group by n"
    )
    assert per_job == [(1, jobs)]
    assert store.sql("select count(*) from {s}job") == [(jobs,)]
    assert store.sql("select count(*) from {s}history") == [(0,)]
    page = app.operator.audit(AuditFilter(verb=None))
    verbs = [(e.verb, e.by) for e in page.entries if e.kind == "bulk"][::-1]
    assert verbs == [("start", "ann"), ("stop", "bob"), ("resume", "bob"), ("finish", "ann")]
    finished = next(entry for entry in page.entries if entry.verb == "finish")
    assert finished.after is not None
    assert finished.after["done"] == jobs
