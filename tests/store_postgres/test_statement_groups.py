"""Statement groups: one transaction each, sent in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest

from freehold.errors import StoreError
from freehold.model.job import NewJob
from freehold.store.postgres.async_pool import AsyncPool
from freehold.store.postgres.pipeline import SqlAndValues
from freehold.store.postgres.pool import Pool, PooledConnection
from freehold.store.postgres.session import AsyncPipelinedSession, Statements
from freehold.store.statements import Rows, Statement
from freehold.store.store import AsyncStore, Store
from tests.store_postgres.catalog import WAITING

_STATE = "select state, query from pg_stat_activity where pid = %s"


@pytest.mark.requirement("S1.6", "P10")
def test_nothing_of_a_group_is_sent_before_all_of_it_is_encoded(postgres_url: str) -> None:
    """A process that is frozen in between holds no locks."""
    with (
        borrowed(postgres_url) as connection,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        connection.execute("select 0")
        seen: list[Any] = []

        def group() -> Iterator[SqlAndValues]:
            """Encoded one after the other, as the values of large statements are."""
            for number in (1, 2):
                seen.append(other.execute(_STATE, (connection.info.backend_pid,)).fetchone())
                yield b"select %d, now()" % number, []

        rows = connection.wait(connection.group_pipeline.exchange(group()))
        ((one, first),), ((two, second),) = rows
        assert (one, two) == (1, 2)
        assert first == second  # one transaction
        assert seen == [("idle", "select 0")] * 2
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_notification_follows_the_commit_and_its_failure_is_ignored(postgres_url: str) -> None:
    with (
        borrowed(postgres_url) as connection,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        for repeated in range(3):  # also once it is prepared
            group = statement("select 1"), statement("select now()")
            rows = exchange(connection, *group, then=statement("select 1/0"))
            assert rows[0] == [(1,)], repeated
        other.execute("listen news")
        exchange(connection, statement(_INSERT, "apple"), then=statement("notify news"))
        assert next(other.notifies(timeout=120)).channel == "news"
        with pytest.raises(psycopg.errors.UniqueViolation):
            exchange(connection, statement(_INSERT, "apple"), then=statement("notify news"))
        assert names(connection) == ["apple"]


def test_a_group_that_fails_writes_nothing_and_keeps_the_connection_usable(
    postgres_url: str,
) -> None:
    with borrowed(postgres_url) as connection:
        for _ in range(3):
            with pytest.raises(psycopg.errors.UniqueViolation):
                exchange(connection, *(statement(_INSERT, n) for n in ("apple", "pear", "apple")))
        with pytest.raises(psycopg.errors.UndefinedTable):
            exchange(connection, statement(_INSERT, "plum"), statement("select * from nowhere"))
        assert names(connection) == []
        exchange(connection, statement(_INSERT, "plum"), statement("select 1"))
        assert names(connection) == ["plum"]


def test_repeated_statements_are_prepared_and_the_oldest_deallocated(postgres_url: str) -> None:
    with borrowed(postgres_url) as connection:
        for number in range(450):
            for _ in range(2):
                ((row,),) = exchange(connection, statement(f"select {number}"))
                assert row == (number,)
        prepared = connection.execute("select count(*) from pg_prepared_statements").fetchone()
        assert prepared == (400,)
        assert exchange(connection, statement("select 0")) == [[(0,)]]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -7,
        2**40,
        1.5,
        "",
        "äöü \\ \" '",
        datetime(2026, 2, 3, 4, 5, 6, 7, UTC),
        [],
        ["a"],
        ["", "b,c", '"', "\\", "{}", "NULL", "ä"],
    ],
)
def test_values_are_read_as_they_were_written(postgres_url: str, value: Any) -> None:
    types = {bool: "bool", int: "bigint", float: "float8", datetime: "timestamptz", list: "text[]"}
    with borrowed(postgres_url) as connection:
        query = f"select $1::{types.get(type(value), 'text')}"
        assert exchange(connection, statement(query, value)) == [[(value,)]]


def test_a_text_with_a_nul_is_refused_and_not_cut_off(postgres_url: str) -> None:
    with borrowed(postgres_url) as connection:
        with pytest.raises(psycopg.DataError, match="character"):
            exchange(connection, statement("select $1::text", "a\0b"))
        assert exchange(connection, statement("select 1")) == [[(1,)]]


def test_a_connection_that_fails_while_a_group_is_sent_is_closed(postgres_url: str) -> None:
    pool = Pool(postgres_url, 1)
    with pool.connection(writes=True) as first:
        first.execute("create table fruit (name text primary key)")
    group = [statement(_INSERT, "apple"), statement(_INSERT, "a\0b")]
    with pytest.raises(StoreError, match="character"), pool.connection(writes=True) as connection:
        exchange(connection, *group, streams=True)
    with pool.connection(writes=True) as next_one:
        assert next_one is not first
        assert names(next_one) == []
    pool.close()


_INSERT = "insert into fruit values ($1)"


def exchange(connection: PooledConnection, *statements: SqlAndValues, **options: Any) -> list[Rows]:
    return connection.wait(connection.group_pipeline.exchange(statements, **options))


def statement(sql: str, *values: Any) -> SqlAndValues:
    return sql.encode(), list(values)


def names(connection: PooledConnection) -> list[str]:
    return [name for (name,) in connection.execute("select name from fruit")]


@contextmanager
def borrowed(url: str) -> Iterator[PooledConnection]:
    """A connection of a pool, with a table."""
    pool = Pool(url, 1)
    with pool.connection(writes=True) as connection:
        connection.execute("create table if not exists fruit (name text primary key)")
    connection.prepare_threshold = None  # psycopg itself prepares nothing
    yield connection
    connection.close()


def test_a_broken_connection_does_not_hide_a_cancellation(postgres_url: str) -> None:
    """Otherwise a sweeper that is cancelled just then runs on, and its worker never ends."""
    asyncio.run(_cancel_while_it_breaks(postgres_url))


async def _cancel_while_it_breaks(url: str) -> None:
    pool = AsyncPool(url, 1)
    store = AsyncStore(AsyncPipelinedSession(lambda: pool, cast(Statements, _LockingStatements())))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(1)")
        task = asyncio.create_task(store.now())
        pid = await _blocked(other, task)
        # The loop stands still meanwhile: the task gets both events at once.
        other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    pool.close()


class _LockingStatements:
    """Like `Statements`, but each of them waits for a lock."""

    def with_values(self, _statement: Statement) -> tuple[bytes, list[Any]]:
        return b"select pg_advisory_lock(1)", []


async def _blocked(other: psycopg.Connection[Any], task: asyncio.Task[Any]) -> int:
    """The backend of this database that waits for the lock, once it does."""
    while not task.done():
        row = other.execute(f"select pid {WAITING} and locktype = 'advisory'".encode()).fetchone()
        if row is not None:
            return int(row[0])
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not wait: {task}")


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("args", [b"{},{}", b"", b"{", b"{}]", b'{},"'])
def test_arguments_that_are_not_one_value_shift_no_other_arguments(
    queue: Store, args: bytes
) -> None:
    """The arguments of a call are sent as one array."""
    jobs = [NewJob(task="t", queue=f"q{n}", args=b"%d" % n) for n in range(4)]
    with pytest.raises(StoreError, match="the database refused"):
        queue.enqueue([*jobs[:2], NewJob(task="t", args=args), *jobs[2:]])
    assert queue.depth(["default", "q0", "q1", "q2", "q3"]) == 0
