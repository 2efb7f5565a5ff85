"""Pools never open more connections than their size, and lose none of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreError, StoreUnavailable
from freehold.store.postgres.async_pool import AsyncPool
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pool import Pool

WAIT_SECONDS = 120.0
SIZE = 2
BACKEND_PID = b"select pg_backend_pid()"


@pytest.fixture
def pool(database: PostgresDatabase) -> Iterator[Pool]:
    with closing(Pool(database.url, SIZE)) as pool:
        yield pool


def backend_pid(pool: Pool) -> int:
    with pool.connection(writes=False) as connection:
        ((row,),) = connection.wait(connection.group_pipeline.exchange_one(BACKEND_PID, []))
    return int(row[0])


def until_a_thread_waits(pool: Pool) -> None:
    while not pool._waiting:  # a counted thread holds the lock until it waits
        pass
    with pool._changed:
        pass


def test_the_connection_that_was_used_last_is_used_next(pool: Pool) -> None:
    assert backend_pid(pool) == backend_pid(pool)


def test_a_thread_that_finds_all_borrowed_gets_the_next_released_connection(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as other, pool.connection(writes=False):
        with pool.connection(writes=False) as second:
            given = second.info.backend_pid
            waiting = other.submit(backend_pid, pool)
            until_a_thread_waits(pool)
        assert waiting.result(WAIT_SECONDS) == given


def test_a_waiting_thread_connects_when_a_borrowed_connection_breaks(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as other, pool.connection(writes=False) as held:
        with contextlib.suppress(StoreError), pool.connection(writes=False) as broken:
            pids = {held.info.backend_pid, broken.info.backend_pid}
            waiting = other.submit(backend_pid, pool)
            until_a_thread_waits(pool)
            broken.execute("select pg_terminate_backend(pg_backend_pid())")
        assert waiting.result(WAIT_SECONDS) not in pids


def test_a_failed_connect_does_not_count_against_the_size() -> None:
    with closing(Pool("postgresql://nobody@127.0.0.1:9/none?connect_timeout=2", SIZE)) as pool:
        for _ in range(SIZE + 1):
            with pytest.raises(StoreUnavailable), pool.connection(writes=False):
                pass


def test_many_threads_never_open_more_connections_than_the_size(database: PostgresDatabase) -> None:
    threads, times = 12, 40
    begin = threading.Barrier(threads)
    with closing(Pool(database.url, SIZE)) as pool, ThreadPoolExecutor(threads) as others:

        def use_repeatedly() -> set[int]:
            begin.wait(WAIT_SECONDS)
            return {backend_pid(pool) for _ in range(times)}

        seen = [others.submit(use_repeatedly) for _ in range(threads)]
        pids = set[int]().union(*(each.result(WAIT_SECONDS) for each in seen))
        with psycopg.connect(database.url) as observer:
            query = "select count(*) from pg_stat_activity where pid = any (%s)"
            assert observer.execute(query, [list(pids)]).fetchone() == (len(pids),)
    assert len(pids) <= SIZE


def test_an_interrupted_acquire_does_not_count_against_the_size(pool: Pool) -> None:
    for _ in range(SIZE + 1):
        backend_pid(pool)
        pool._idle[-1].socket_poll = Interrupted()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            backend_pid(pool)
    assert pool._open == 0


# -- for asyncio ---------------------------------------------------------------------------------


async def use_connection(pool: AsyncPool) -> None:
    async with pool.connection(writes=False) as connection:
        await connection.run_exchange(connection.group_pipeline.exchange_one(BACKEND_PID, []))


def test_tasks_are_served_in_order_and_never_open_more_than_the_size(
    database: PostgresDatabase,
) -> None:
    async def scenario() -> tuple[list[str], set[int]]:
        pool = AsyncPool(database.url, 1)
        order: list[str] = []
        pids: set[int] = set()

        async def use_repeatedly(name: str) -> None:
            for _ in range(3):
                async with pool.connection(writes=False) as connection:
                    order.append(name)
                    pids.add(connection.info.backend_pid)
                    await asyncio.sleep(0)

        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(use_repeatedly(name))
        pool.close()
        return order, pids

    order, pids = asyncio.run(scenario())
    assert "".join(order) == "abcabcabc"
    assert len(pids) == 1


def test_a_task_that_is_cancelled_while_it_waits_does_not_block_the_others(
    database: PostgresDatabase,
) -> None:
    async def scenario() -> int:
        pool = AsyncPool(database.url, 1)
        async with asyncio.timeout(WAIT_SECONDS):
            async with pool.connection(writes=False):
                waiting_task = asyncio.create_task(use_connection(pool))
                admitted = asyncio.create_task(use_connection(pool))
                last = asyncio.create_task(use_connection(pool))
                await asyncio.sleep(0)  # each of them begins to wait
                assert len(pool._waiting) == 3
                waiting_task.cancel()
                await asyncio.wait([waiting_task])
            admitted.cancel()  # it was admitted, and has not run since
            await asyncio.wait([admitted])
            await last
            await use_connection(pool)
        assert waiting_task.cancelled()
        assert admitted.cancelled()
        pool.close()
        return pool._borrowed

    assert asyncio.run(scenario()) == 0


def test_a_failed_connect_of_a_task_does_not_count_against_the_size() -> None:
    async def scenario() -> int:
        pool = AsyncPool("postgresql://nobody@127.0.0.1:9/none?connect_timeout=2", 1)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await use_connection(pool)
        return pool._borrowed

    assert asyncio.run(scenario()) == 0


def test_no_more_than_the_soft_limit_is_used_while_no_statement_stalls(
    database: PostgresDatabase,
) -> None:
    async def scenario() -> set[int]:
        pool = AsyncPool(database.url, 16, soft_limit=2, stall_seconds=WAIT_SECONDS)
        pids: set[int] = set()

        async def read_pid() -> None:
            async with pool.connection(writes=False) as connection:
                pids.add(connection.info.backend_pid)
                await connection.run_exchange(
                    connection.group_pipeline.exchange_one(BACKEND_PID, [])
                )

        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(read_pid())
        pool.close()
        return pids

    assert len(asyncio.run(scenario())) == 2


def test_stalled_statements_do_not_count_against_the_soft_limit(
    database: PostgresDatabase,
) -> None:
    """A locked table of one tenant does not slow down the others; and later the limit is back."""

    async def scenario(other: psycopg.Connection[Any]) -> AsyncPool:
        pool = AsyncPool(database.url, 8, soft_limit=2, stall_seconds=0.02)
        lock = b"select pg_advisory_xact_lock(7)"

        async def stall() -> None:
            async with pool.connection(writes=False) as connection:
                await connection.run_exchange(connection.group_pipeline.exchange_one(lock, []))

        async with asyncio.timeout(WAIT_SECONDS):
            stalled = [asyncio.create_task(stall()) for _ in range(5)]
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(use_connection(pool))
            assert not any(task.done() for task in stalled)
            other.execute("select pg_advisory_unlock(7)")
            await asyncio.gather(*stalled)
            pool._check_stalls(asyncio.get_running_loop())
        pool.close()
        return pool

    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(7)")
        pool = asyncio.run(scenario(other))
    assert (pool._borrowed, pool._limit, pool._busy_since) == (0, 2, {})


def test_a_stalled_connect_does_not_count_against_the_soft_limit() -> None:
    async def scenario() -> int:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
            pool = AsyncPool(url, 8, soft_limit=1, stall_seconds=0.02)
            tasks = [asyncio.create_task(use_connection(pool)) for _ in range(3)]
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(WAIT_SECONDS):
                callers = [await loop.sock_accept(silent) for _ in tasks]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for caller, _address in callers:
                caller.close()
        pool.close()
        return pool._borrowed

    assert asyncio.run(scenario()) == 0


class Interrupted:
    """Ctrl-C during the check of an idle connection."""

    def poll(self, _timeout: int) -> None:
        raise KeyboardInterrupt
