"""Nobody waits for long behind a transaction whose owner has gone silent in the middle of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import psycopg
import pytest

from leasehold.store.faces import AwaitedStore
from leasehold.store.postgres.pool import AsyncPool, Pool
from leasehold.store.postgres.session import AsyncPostgresSession, PostgresSession, Statements
from leasehold.store.steps import Batch, Statement

_TIMEOUT = b"select current_setting('idle_in_transaction_session_timeout')"
_TWO = Batch((Statement("first", {}), Statement("second", {})), writes=True)


class _Asking:
    """As `Statements`, but asks the server how long it would wait."""

    def __init__(self) -> None:
        self._real = Statements("leasehold", "1")

    def prepare(self, statement: Statement) -> tuple[bytes, list[Any]]:
        if statement.name == "commit_soon":
            return self._real.prepare(statement)
        return _TIMEOUT, []


@pytest.mark.requirement("S1.6")
def test_the_server_lets_go_of_a_batch_that_is_not_sent_to_its_end(postgres_url: str) -> None:
    pool = Pool(postgres_url, 1)
    session = PostgresSession(pool, cast(Statements, _Asking()))
    assert session.execute(_TWO) == [[("1s",)], [("1s",)]]
    with pool.connection(writes=False) as connection:  # nothing is left in the session
        assert connection.execute(_TIMEOUT).fetchone() == ("0",)
    pool.close()


async def _the_same_for_asyncio(postgres_url: str) -> None:
    pool = AsyncPool(postgres_url, 1)
    session = AsyncPostgresSession(pool, cast(Statements, _Asking()))
    assert await session.execute(_TWO) == [[("1s",)], [("1s",)]]
    await pool.close()


def test_the_same_for_asyncio(postgres_url: str) -> None:
    asyncio.run(_the_same_for_asyncio(postgres_url))


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
