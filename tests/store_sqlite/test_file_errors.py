"""Full disks, and files that are read-only, missing, or no database."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from freehold.errors import StoreError, StoreFull, StoreUnavailable
from freehold.model.job import Enqueued, NewJob
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import AsyncStore, Store
from tests.concurrency import run_concurrently
from tests.store_sqlite.conftest import Helper

JOB = NewJob(task="t")
LARGE = NewJob(task="t", args=json.dumps({"x": "x" * 2000}).encode())


@pytest.mark.requirement("S2.1")
def test_a_full_disk_is_reported_loses_nothing_and_recovers(database: SqliteDatabase) -> None:
    store = Store(database.session())
    store.enqueue([JOB])
    limit_pages(database, 100)
    enqueue = partial(enqueue_until_full, store)
    acknowledged = {job_id for ids in run_concurrently([enqueue] * 8) for job_id in ids}
    assert acknowledged
    with pytest.raises(StoreFull, match="no space left"):
        store.enqueue([LARGE] * 10)
    limit_pages(database, 1_000_000)
    stored = ids_in_file(database)
    assert stored - {1} == acknowledged, "acknowledged jobs only"
    assert store.enqueue([LARGE])[0].created


def limit_pages(database: SqliteDatabase, pages: int) -> None:
    """SQLite's own limit: a writer sees a full disk."""
    with database._engine.transaction() as connection:
        connection.execute(f"pragma max_page_count = {pages}")


def enqueue_until_full(store: Store) -> list[int]:
    ids: list[int] = []
    while True:
        try:
            ids += [each.id for each in store.enqueue([LARGE])]
        except StoreFull:
            return ids


def ids_in_file(database: SqliteDatabase) -> set[int]:
    assert database.path is not None
    with closing(sqlite3.connect(database.path)) as connection:
        return {row[0] for row in connection.execute("select id from job")}


@pytest.mark.requirement("S2.1")
def test_writes_of_many_threads_are_all_kept(
    database: SqliteDatabase,
) -> None:
    store = Store(database.session())

    def enqueue() -> list[Enqueued]:
        return [each for _ in range(10) for each in store.enqueue([JOB])]

    results = [each for share in run_concurrently([enqueue] * 32) for each in share]
    ids = {each.id for each in results}
    assert len(ids) == 320
    assert ids_in_file(database) == ids


@pytest.mark.requirement("S2.1")
def test_a_refused_write_does_not_affect_others_of_its_transaction(
    database: SqliteDatabase,
) -> None:
    bad = NewJob(task="t", max_attempts=0)

    async def enqueue_all() -> list[object]:
        store = AsyncStore(database.async_session())
        jobs = [bad if number % 3 == 0 else JOB for number in range(30)]
        calls = [store.enqueue([job]) for job in jobs]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    results = asyncio.run(enqueue_all())
    assert all(isinstance(result, StoreError) for result in results[::3])
    good = [each[0].id for each in results if isinstance(each, list)]
    assert len(good) == 20
    assert ids_in_file(database) == set(good)


@pytest.mark.requirement("S2.1")
def test_only_the_owner_may_read_the_files(database: SqliteDatabase, path: Path) -> None:
    store = Store(database.session())
    store.enqueue([JOB])
    store.counts()
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert {"jobs.db", "jobs.db-wal", "jobs.db-shm"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """With a store, readable by all users, writable only by its owner."""
    folder = Path(tempfile.mkdtemp(prefix="freehold-test-"))
    SqliteDatabase(folder / "jobs.db").close()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.requirement("S2.1")
@pytest.mark.parametrize("name", ["jobs.db", "new.db"])
def test_a_read_only_file_is_reported_with_what_to_check(closed_folder: Path, name: str) -> None:
    helper = Helper(
        "unprivileged", str(closed_folder / name), module="tests.store_sqlite.forking_process"
    )
    kind, message = helper.result()
    assert kind == "StoreReadOnly", message
    assert str(closed_folder / name) in str(message)
    assert "check the owner and mode" in str(message)


@pytest.mark.requirement("S2.1")
def test_a_file_of_another_user_is_reported_as_a_lack_of_permission(closed_folder: Path) -> None:
    path = closed_folder / "jobs.db"
    path.chmod(0o600 if os.geteuid() == 0 else 0o000)
    helper = Helper("unprivileged", str(path), module="tests.store_sqlite.forking_process")
    kind, message = helper.result()
    assert kind == "StoreDenied", message
    assert f"{path} cannot be opened: permission denied; check the owner and mode" in str(message)


@pytest.mark.requirement("S2.1")
def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="No such file or directory"):
        SqliteDatabase(tmp_path / "nowhere" / "jobs.db")


@pytest.mark.requirement("S2.1")
def test_a_file_that_is_no_database_is_reported_and_not_changed(path: Path) -> None:
    text = "dear diary, " * 1000
    path.write_text(text)
    with pytest.raises(StoreError, match=r"jobs\.db is not an SQLite database"):
        SqliteDatabase(path)
    assert path.read_text() == text


@pytest.mark.requirement("S2.1")
def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=str(tmp_path)):
        SqliteDatabase(tmp_path)
