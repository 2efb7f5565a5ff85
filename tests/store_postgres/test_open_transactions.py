"""Nobody waits for long behind a transaction whose owner has gone silent in the middle of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import psycopg
import pytest

from leasehold.store.faces import AwaitedStore
from leasehold.store.postgres.pipelining import aat_once, at_once
from leasehold.store.postgres.pool import AsyncPool, Pool
from leasehold.store.postgres.session import AsyncPostgresSession, Statements
from leasehold.store.steps import Statement

_STATE = "select state, query from pg_stat_activity where pid = %s"


@pytest.mark.requirement("S1.6", "P10")
def test_nothing_of_a_batch_is_sent_before_all_is_there(postgres_url: str) -> None:
    """Whoever is frozen in between holds no locks."""
    with (
        psycopg.connect(postgres_url, autocommit=True) as ours,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        ours.execute("select 0")
        pid = ours.info.backend_pid
        with at_once(ours):
            cursors = [ours.execute(f"select {number}, now()") for number in (1, 2)]
            assert other.execute(_STATE, (pid,)).fetchone() == ("idle", "select 0")
        (one, first), (two, second) = [cursor.fetchall()[0] for cursor in cursors]
        assert (one, two) == (1, 2)
        assert first == second  # one transaction
        assert ours.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.requirement("P10")
def test_the_same_for_asyncio(postgres_url: str) -> None:
    async def scene() -> None:
        ours = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)
        await ours.execute("select 0")
        pid = ours.info.backend_pid
        with psycopg.connect(postgres_url, autocommit=True) as other:
            async with aat_once(ours):
                cursors = [await ours.execute(f"select {number}") for number in (1, 2)]
                assert other.execute(_STATE, (pid,)).fetchone() == ("idle", "select 0")
        assert [await cursor.fetchall() for cursor in cursors] == [[(1,)], [(2,)]]
        await ours.close()

    asyncio.run(scene())


def test_a_batch_that_fails_leaves_nothing_and_a_whole_connection(postgres_url: str) -> None:
    pool = Pool(postgres_url, 1)
    with pool.connection(writes=True) as connection:
        connection.execute("create table fruit (name text primary key)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            _put(connection, "apple", "pear", "apple", "plum")
        assert connection.execute("select count(*) from fruit").fetchone() == (0,)
    pool.close()


def _put(connection: psycopg.Connection[Any], *names: str) -> None:
    with at_once(connection):
        for name in names:
            connection.execute("insert into fruit values (%s)", (name,))


def test_a_connection_that_breaks_hides_no_cancellation(postgres_url: str) -> None:
    """A sweeper that was cancelled just then lived on, and its worker never ended."""
    asyncio.run(_cancel_while_it_breaks(postgres_url))


async def _cancel_while_it_breaks(url: str) -> None:
    pool = AsyncPool(url, 1)
    store = AwaitedStore(AsyncPostgresSession(pool, cast(Statements, _Waiting())))
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(1)")
        asking = asyncio.create_task(store.now())
        pid = await _blocked(other)
        # The loop stands still meanwhile: the task hears of both at once.
        other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    await pool.close()


class _Waiting:
    """As `Statements`, but waits for a lock."""

    def prepare(self, _statement: Statement) -> tuple[bytes, list[Any]]:
        return b"select pg_advisory_lock(1)", []


async def _blocked(other: psycopg.Connection[Any]) -> int:
    """Which backend waits for the lock, once it does."""
    while True:
        row = other.execute("select pid from pg_locks where locktype = 'advisory' and not granted")
        if (found := row.fetchone()) is not None:
            return int(found[0])
        await asyncio.sleep(0.01)
