"""Killed, forked, migrated by eight: the file stays whole and open to the next."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freehold.errors import SchemaTooNew
from freehold.model.job import NewJob
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from tests.store_sqlite.conftest import Helper, Start

KILLS = 5
JOB = NewJob(task="t")


def check_whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


@pytest.mark.requirement("S2.1", "S0.9")
def test_writers_killed_while_writing_lose_nothing_and_leave_no_lock(
    database: SqliteDatabase, path: Path, start: Start
) -> None:
    store = Store(database.session())
    for number in range(KILLS):
        writers = [start("write", str(path)) for _ in range(2)]
        said = [writer.says() for writer in writers for _ in range(30 + 7 * number)]
        for writer in writers:
            said += writer.kill()
        # A line cut in half was not said.
        acknowledged = {int(word) for word in said if word}
        assert set(store.read(sorted(acknowledged))) >= complete(acknowledged, said)
        assert store.enqueue([JOB])[0].created, "nobody holds the pen"
        check_whole(path)


def complete(acknowledged: set[int], said: list[str]) -> set[int]:
    """Without the last word, which may have been cut by the kill."""
    return acknowledged - {int(said[-1])} if said and said[-1] else acknowledged


@pytest.mark.requirement("S2.1")
def test_killed_at_any_moment_of_its_first_migration_the_file_is_usable(tmp_path: Path) -> None:
    helper = Helper("migrate", str(tmp_path), "16", "4", module="tests.store_sqlite.forked")
    killed = helper.answer()
    whole = schema(tmp_path / "whole.db")
    for number in range(len(killed)):
        path = tmp_path / f"killed{number}.db"
        database = SqliteDatabase(path)
        assert Store(database.session()).enqueue([JOB])[0].id == 1
        database.close()
        check_whole(path)
        assert schema(path) == whole


def schema(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("pragma user_version").fetchall()
        return version + connection.execute("select name, sql from sqlite_schema").fetchall()


@pytest.mark.requirement("S2.1")
def test_a_file_of_a_newer_program_is_left_alone(path: Path) -> None:
    SqliteDatabase(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 999")
    with pytest.raises(SchemaTooNew, match=r"version 999.*knows up to \d+: upgrade freehold"):
        SqliteDatabase(path)


@pytest.mark.requirement("S2.1")
def test_children_forked_while_others_write_neither_hang_nor_break_the_file(path: Path) -> None:
    helper = Helper("fork", str(path), module="tests.store_sqlite.forked")
    assert set(helper.answer()) == {0}
    check_whole(path)


@pytest.mark.requirement("S2.1")
@pytest.mark.parametrize("role", ["close", "listen"])
def test_a_forked_child_loses_nothing_when_its_parent_closes_the_file(
    path: Path, role: str
) -> None:
    """A worker listens; its connection once stayed open in the child, and broke its locks."""
    helper = Helper(role, str(path), module="tests.store_sqlite.forked")
    assert helper.answer() == [1, 2, 3, 4]
    check_whole(path)
