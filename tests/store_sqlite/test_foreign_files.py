"""Files of other programs, and of tenants that were moved away, are left as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freehold.errors import SchemaMissing, StoreError
from freehold.model.job import NewJob
from freehold.store.sqlite import file_copy
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.store.types import JobFilter

USE = [
    lambda store: store.page(JobFilter()),
    lambda store: store.queues(),
    lambda store: store.enqueue([NewJob(task="t")]),
]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table customer (name text)")
    return path


def opened(path: Path) -> SqliteDatabase:
    return SqliteDatabase(path)


@pytest.mark.parametrize("use", USE)
def test_a_file_of_another_program_gets_no_tables(foreign: Path, use: object) -> None:
    before = foreign.read_bytes()
    with closing(opened(foreign)) as database, pytest.raises(SchemaMissing, match="another file"):
        use(Store(database.session()))  # type: ignore[operator]
    assert foreign.read_bytes() == before


def test_migrate_adds_the_schema_to_a_file_of_another_program(foreign: Path) -> None:
    with closing(opened(foreign)) as database:
        assert len(database.migrate()) == len(database.migration_sql())
        assert Store(database.session()).enqueue([NewJob(task="t")])[0].created
    with closing(opened(foreign)) as database:
        assert Store(database.session()).has_live_jobs()


def test_migrate_leaves_the_version_of_another_program_alone(foreign: Path) -> None:
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("pragma user_version = 1")
    with closing(opened(foreign)) as database, pytest.raises(StoreError, match="another program"):
        database.migrate()
    with closing(sqlite3.connect(foreign)) as connection:
        assert connection.execute("pragma user_version").fetchone() == (1,)


def test_a_copy_of_a_store_in_another_journal_mode_is_a_store(tmp_path: Path) -> None:
    """As VACUUM INTO makes it."""
    with closing(opened(tmp_path / "jobs.db")) as database:
        Store(database.session()).enqueue([NewJob(task="t")])
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        connection.execute("vacuum into ?", (str(tmp_path / "copy.db"),))
    with closing(opened(tmp_path / "copy.db")) as database:
        assert Store(database.session()).has_live_jobs()


def test_opening_the_retired_file_of_an_older_version_does_not_migrate_it(tmp_path: Path) -> None:
    path = tmp_path / "jobs.acme.db"
    with closing(opened(path)) as database:
        Store(database.session()).enqueue([NewJob(task="t")])
    file_copy.retire(path)
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("pragma user_version").fetchone()
        connection.execute("pragma user_version = 1")
    with closing(opened(path)) as database:
        with pytest.raises(SchemaMissing):
            Store(database.session()).has_live_jobs()
        with pytest.raises(StoreError, match="moved away"):
            database.migrate()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma user_version").fetchone() == (1,)
        connection.execute(f"pragma user_version = {version}")
    file_copy.restore(path)
    with closing(opened(path)) as database:
        assert Store(database.session()).has_live_jobs()
        assert database.pending() == []
