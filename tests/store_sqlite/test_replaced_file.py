"""A file that is removed or replaced under an open store: noticed, and never written to unseen."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.errors import SchemaMissing, StoreUnavailable
from freehold.model.job import NewJob
from freehold.store.sqlite import file_copy
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker

JOB = NewJob(task="t")


def ids_in(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("select id from job order by id")]


@pytest.mark.requirement("S0.1")
def test_no_job_is_acknowledged_into_a_removed_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(SqliteDatabase(path)) as database:
        store = Store(database.session())
        store.enqueue([JOB])
        file_copy.remove(path)
        for _ in range(2):
            with pytest.raises(SchemaMissing, match="was it moved or dropped"):
                store.enqueue([JOB])
            with pytest.raises(SchemaMissing, match="was it moved or dropped"):
                store.has_live_jobs()
        assert not path.exists()


def test_a_replaced_file_is_reported_once_and_then_used(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(SqliteDatabase(path)) as database:
        store = Store(database.session())
        store.enqueue([JOB])
        assert store.has_live_jobs()
        file_copy.remove(path)
        with closing(SqliteDatabase(path)) as other:
            Store(other.session()).enqueue([JOB] * 2)
            with pytest.raises(StoreUnavailable, match=r"jobs\.db was replaced by another file"):
                store.enqueue([JOB])
            assert store.has_live_jobs()
            assert store.enqueue([JOB])[0].id == 3
            assert Store(other.session()).enqueue([JOB])[0].id == 4
    assert ids_in(path) == [1, 2, 3, 4]


def test_closing_a_removed_store_leaves_the_log_of_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    removed = SqliteDatabase(path)
    Store(removed.session()).enqueue([JOB])
    file_copy.remove(path)
    with closing(SqliteDatabase(path)) as successor:
        Store(successor.session()).enqueue([JOB] * 3)
        removed.close()
        assert Path(f"{path}-wal").exists()
        assert ids_in(path) == [1, 2, 3]


def _replace(path: Path, with_job: NewJob) -> None:
    """In one step: the worker meets no missing or empty file between the two."""
    new = path.with_name("new.db")
    with closing(SqliteDatabase(new)) as database:
        Store(database.session()).enqueue([with_job])
    for suffix in ("-wal", "-shm"):  # SQLite would apply the old log to the new file
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    new.replace(path)


def test_a_worker_goes_on_with_the_file_that_replaced_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jobs.db"
    app, ran = Freehold(str(path)), asyncio.Event()

    @app.task(name="note")
    async def note() -> None:
        ran.set()

    async def scenario() -> None:
        settings = WorkerSettings(poll_interval_ms=50, shutdown_grace_seconds=0.0)
        worker = Worker(app._database, app.tasks, settings)
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(60):
            await note.aenqueue()
            await ran.wait()
            ran.clear()
            _replace(path, with_job=NewJob(task="note"))
            await ran.wait()
            worker.drain()
            assert await running == 0

    with caplog.at_level(logging.WARNING, "freehold"):
        asyncio.run(scenario())
    app.close()
    lines = [line for line in caplog.messages if "was replaced by another file" in line]
    assert len(lines) == 1
