"""Kills and forks leave the file whole and usable."""

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
        printed = [writer.read_line() for writer in writers for _ in range(30 + 7 * number)]
        for writer in writers:
            printed += writer.kill()
        # The kill may have cut the last line.
        acknowledged = {int(line) for line in printed if line}
        assert set(store.read(sorted(acknowledged))) >= complete(acknowledged, printed)
        assert store.enqueue([JOB])[0].created, "the write lock is free"
        check_whole(path)


def complete(acknowledged: set[int], printed: list[str]) -> set[int]:
    """Without the last line, which the kill may have cut."""
    return acknowledged - {int(printed[-1])} if printed and printed[-1] else acknowledged


@pytest.mark.requirement("S2.1")
def test_a_file_is_usable_after_a_kill_during_its_first_migration(tmp_path: Path) -> None:
    helper = Helper(
        "migrate", str(tmp_path), "16", "4", module="tests.store_sqlite.forking_process"
    )
    killed = helper.result()
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
    helper = Helper("fork", str(path), module="tests.store_sqlite.forking_process")
    assert set(helper.result()) == {0}
    check_whole(path)


@pytest.mark.requirement("S2.1")
@pytest.mark.parametrize("role", ["close", "listen"])
def test_a_forked_child_loses_nothing_when_its_parent_closes_the_file(
    path: Path, role: str
) -> None:
    """Also while it listens: the inherited connection of a listener would break its locks."""
    helper = Helper(role, str(path), module="tests.store_sqlite.forking_process")
    assert helper.result() == [1, 2, 3, 4]
    check_whole(path)
