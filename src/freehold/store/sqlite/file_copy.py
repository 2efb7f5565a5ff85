"""Whole files: retiring a tenant's file, and copying it to another folder."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from freehold.errors import StoreError
from freehold.model.state import Stage
from freehold.store.sqlite.engine import create_private, existing
from freehold.store.sqlite.errors import Translating
from freehold.store.sqlite.write_lock import QUEUE_LOCK, WRITE_LOCK, WriteLock
from freehold.store.stage_sql import stage_byte

#: In front of the names of tables: a process that has the file open finds none of them any more.
_RETIRED = "left_"
_BUSY_SECONDS = 30.0
_SUFFIXES = ("-wal", "-shm", QUEUE_LOCK, WRITE_LOCK)


def is_used(path: Path) -> bool:
    """A job was enqueued there at some time, or there is a schedule."""
    with _opened(path) as connection:
        if _has_schedules(connection):
            return True
        query = f"select count(*) from sqlite_master where name in ('job', '{_RETIRED}job')"
        if connection.execute(query).fetchone()[0] == 0:
            return False
        return bool(connection.execute("select count(*) from sqlite_sequence").fetchone()[0])


def is_retired(path: Path) -> bool:
    with _opened(path) as connection:
        return f"{_RETIRED}job" in _tables(connection)


class Unless(Enum):
    """What prevents a file from being retired: leased jobs; all live jobs, and schedules; or
    nothing."""

    LEASED = f"select exists (select 1 from job where stage = '{stage_byte(Stage.LEASED)}')"
    LIVE = "select exists (select 1 from job)"
    NEVER = "select 0"


def retire(path: Path, unless: Unless = Unless.LEASED) -> bool:
    with _opened(path) as connection, _writing(path, connection):
        tables = _tables(connection)
        if "job" not in tables:
            return True
        if connection.execute(unless.value).fetchone()[0]:
            return False
        if unless is Unless.LIVE and _has_schedules(connection):
            return False
        for table in tables:
            connection.execute(f"alter table {table} rename to {_RETIRED}{table}")
    return True


def restore(path: Path) -> None:
    with _opened(path) as connection, _writing(path, connection):
        for table in _tables(connection):
            if table.startswith(_RETIRED):
                connection.execute(f"alter table {table} rename to {table.removeprefix(_RETIRED)}")


def copy(source: Path, goal: Path) -> None:
    """The file has another name until it is whole, and its tables stay retired."""
    half_copied = _half_copied(goal)
    remove(half_copied)
    create_private(half_copied)
    with _opened(source) as reading, _opened(half_copied) as writing:
        reading.backup(writing)
        _compare(reading, writing, goal)
    with Translating(goal):
        os.link(half_copied, goal)  # unlike a rename, never replaces a file
    remove(half_copied)


def _compare(reading: sqlite3.Connection, writing: sqlite3.Connection, goal: Path) -> None:
    for table in _tables(writing):
        before = reading.execute(f"select count(*) from {table}").fetchone()
        after = writing.execute(f"select count(*) from {table}").fetchone()
        if before != after:
            raise StoreError(f"{goal}: {table} has {after[0]} rows of {before[0]}: nothing moved")


def remove(path: Path) -> None:
    for each in (path, *(Path(f"{path}{suffix}") for suffix in _SUFFIXES)):
        each.unlink(missing_ok=True)


def remove_half_copied(goal: Path) -> None:
    """The remains of a copy that was killed."""
    remove(_half_copied(goal))


def _half_copied(goal: Path) -> Path:
    return Path(f"{goal}-half")


def _has_schedules(connection: sqlite3.Connection) -> bool:
    """False also in a file that is not migrated yet."""
    table = {"schedule", f"{_RETIRED}schedule"} & set(_tables(connection))
    query = f"select exists (select 1 from {table.pop()})" if table else "select 0"
    return bool(connection.execute(query).fetchone()[0])


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' "
        "order by name"
    )
    return [name for (name,) in rows]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with Translating(path):
        connection = sqlite3.connect(
            existing(path), uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )
        with contextlib.closing(connection):
            yield connection


@contextlib.contextmanager
def _writing(path: Path, connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction under the write lock."""
    write_lock = WriteLock(path)
    try:
        with write_lock:
            connection.execute("begin immediate")
            try:
                yield
                connection.execute("commit")
            except BaseException:
                connection.execute("rollback")
                raise
    finally:
        write_lock.close()
