"""Nobody waits for long behind a transaction whose owner has gone silent in the middle of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import pytest

from freehold.errors import StoreError
from freehold.store.postgres.pipeline import PooledConnection, PreparedStatement
from freehold.store.postgres.pool import AsyncPool, Pool
from freehold.store.postgres.session import AsyncPostgresSession, Statements
from freehold.store.statements import Statement
from freehold.store.store import AsyncStore
from tests.store_postgres.catalog import WAITING

_STATE = "select state, query from pg_stat_activity where pid = %s"


@pytest.mark.requirement("S1.6", "P10")
def test_nothing_of_a_batch_is_sent_before_all_is_there(postgres_url: str) -> None:
    """Whoever is frozen in between holds no locks."""
    with lent(postgres_url) as ours, psycopg.connect(postgres_url, autocommit=True) as other:
        ours.execute("select 0")
        seen: list[Any] = []

        def values() -> list[Any]:
            """Asked for just before it is sent."""
            seen.append(other.execute(_STATE, (ours.info.backend_pid,)).fetchone())
            return []

        batch = [PreparedStatement(b"select %d, now()" % number, values) for number in (1, 2)]
        ((one, first),), ((two, second),) = ours.wait(ours.wire.talk(batch))
        assert (one, two) == (1, 2)
        assert first == second  # one transaction
        assert seen == [("idle", "select 0")] * 2
        assert ours.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_what_is_said_then_comes_after_the_commit_and_cannot_fail_it(postgres_url: str) -> None:
    with lent(postgres_url) as ours, psycopg.connect(postgres_url, autocommit=True) as other:
        for repeated in range(3):  # also once it is prepared
            rows = ours.wait(
                ours.wire.talk([said("select 1"), said("select now()")], then=said("select 1/0"))
            )
            assert rows[0] == [(1,)], repeated
        other.execute("listen news")
        ours.wait(ours.wire.talk([said(_PUT, "apple")], then=said("notify news")))
        assert next(other.notifies(timeout=120)).channel == "news"
        with pytest.raises(psycopg.errors.UniqueViolation):
            ours.wait(ours.wire.talk([said(_PUT, "apple")], then=said("notify news")))
        assert names(ours) == ["apple"]


def test_a_batch_that_fails_leaves_nothing_and_a_whole_connection(postgres_url: str) -> None:
    with lent(postgres_url) as ours:
        for _ in range(3):
            with pytest.raises(psycopg.errors.UniqueViolation):
                ours.wait(ours.wire.talk([said(_PUT, n) for n in ("apple", "pear", "apple")]))
        with pytest.raises(psycopg.errors.UndefinedTable):
            ours.wait(ours.wire.talk([said(_PUT, "plum"), said("select * from nowhere")]))
        assert names(ours) == []
        ours.wait(ours.wire.talk([said(_PUT, "plum"), said("select 1")]))
        assert names(ours) == ["plum"]


def test_statements_that_come_again_are_prepared_and_the_oldest_given_up(postgres_url: str) -> None:
    with lent(postgres_url) as ours:
        for number in range(450):
            for _ in range(2):
                ((answer,),) = ours.wait(ours.wire.talk([said(f"select {number}")]))
                assert answer == (number,)
        kept = ours.execute("select count(*) from pg_prepared_statements").fetchone()
        assert kept == (400,)
        assert ours.wait(ours.wire.talk([said("select 0")])) == [[(0,)]]


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
def test_values_come_back_as_they_went(postgres_url: str, value: Any) -> None:
    types = {bool: "bool", int: "bigint", float: "float8", datetime: "timestamptz", list: "text[]"}
    with lent(postgres_url) as ours:
        asked = f"select $1::{types.get(type(value), 'text')}"
        assert ours.wait(ours.wire.talk([said(asked, value)])) == [[(value,)]]


def test_a_text_with_a_zero_is_refused_and_not_cut_off(postgres_url: str) -> None:
    with lent(postgres_url) as ours:
        with pytest.raises(psycopg.DataError, match="character"):
            ours.wait(ours.wire.talk([said("select $1::text", "a\0b")]))
        assert ours.wait(ours.wire.talk([said("select 1")])) == [[(1,)]]


def test_what_fails_while_it_is_sent_leaves_no_connection_behind(postgres_url: str) -> None:
    pool = Pool(postgres_url, 1)
    with pool.connection(writes=True) as first:
        first.execute("create table fruit (name text primary key)")
    batch = [said(_PUT, "apple"), said(_PUT, "a\0b")]
    with pytest.raises(StoreError, match="character"), pool.connection(writes=True) as connection:
        connection.wait(connection.wire.talk(batch, flows=True))
    with pool.connection(writes=True) as next_one:
        assert next_one is not first
        assert names(next_one) == []
    pool.close()


_PUT = "insert into fruit values ($1)"


def said(sql: str, *values: Any) -> PreparedStatement:
    return PreparedStatement(sql.encode(), lambda: list(values))


def names(connection: PooledConnection) -> list[str]:
    return [name for (name,) in connection.execute("select name from fruit")]


@contextmanager
def lent(url: str) -> Iterator[PooledConnection]:
    """As the pool has it, with a table."""
    pool = Pool(url, 1)
    with pool.connection(writes=True) as connection:
        connection.execute("create table if not exists fruit (name text primary key)")
    connection.prepare_threshold = None  # what is prepared is prepared by us
    yield connection
    connection.close()


def test_a_connection_that_breaks_hides_no_cancellation(postgres_url: str) -> None:
    """A sweeper that was cancelled just then lived on, and its worker never ended."""
    asyncio.run(_cancel_while_it_breaks(postgres_url))


async def _cancel_while_it_breaks(url: str) -> None:
    pool = AsyncPool(url, 1)
    store = AsyncStore(AsyncPostgresSession(lambda: pool, cast(Statements, _Waiting())))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(1)")
        asking = asyncio.create_task(store.now())
        pid = await _blocked(other, asking)
        # The loop stands still meanwhile: the task hears of both at once.
        other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    pool.close()


class _Waiting:
    """As `Statements`, but waits for a lock."""

    def prepare(self, _statement: Statement) -> tuple[bytes, list[Any]]:
        return b"select pg_advisory_lock(1)", []


async def _blocked(other: psycopg.Connection[Any], asking: asyncio.Task[Any]) -> int:
    """Which backend waits for the lock, once it does. Not one of another test's database."""
    while not asking.done():
        row = other.execute(f"select pid {WAITING} and locktype = 'advisory'".encode()).fetchone()
        if row is not None:
            return int(row[0])
        await asyncio.sleep(0.01)
    raise AssertionError(f"it did not wait: {asking}")
