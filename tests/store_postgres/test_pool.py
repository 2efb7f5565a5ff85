"""Connections kept for the next use: no more than their number, and none of them lost."""

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
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pool import AsyncPool, Pool

WAIT_SECONDS = 120.0
SIZE = 2
WHO = b"select pg_backend_pid()"


@pytest.fixture
def pool(database: PostgresDatabase) -> Iterator[Pool]:
    with closing(Pool(database.url, SIZE)) as pool:
        yield pool


def who(pool: Pool) -> int:
    with pool.connection(writes=False) as line:
        ((row,),) = line.wait(line.wire.say(WHO, []))
    return int(row[0])


def until_somebody_waits(pool: Pool) -> None:
    while not pool._waiting:  # whoever is counted there holds the lock until it waits
        pass
    with pool._change:
        pass


def test_the_one_that_was_used_last_is_used_next(pool: Pool) -> None:
    assert who(pool) == who(pool)


def test_who_finds_all_of_them_lent_gets_the_next_one_that_is_given_back(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as other, pool.connection(writes=False):
        with pool.connection(writes=False) as second:
            given = second.info.backend_pid
            waiting = other.submit(who, pool)
            until_somebody_waits(pool)
        assert waiting.result(WAIT_SECONDS) == given


def test_who_waits_connects_anew_when_one_of_the_others_broke(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as other, pool.connection(writes=False) as held:
        with contextlib.suppress(StoreError), pool.connection(writes=False) as broken:
            pids = {held.info.backend_pid, broken.info.backend_pid}
            waiting = other.submit(who, pool)
            until_somebody_waits(pool)
            broken.execute("select pg_terminate_backend(pg_backend_pid())")
        assert waiting.result(WAIT_SECONDS) not in pids


def test_who_could_not_connect_leaves_its_place_to_others() -> None:
    with closing(Pool("postgresql://nobody@127.0.0.1:9/none?connect_timeout=2", SIZE)) as pool:
        for _ in range(SIZE + 1):
            with pytest.raises(StoreUnavailable), pool.connection(writes=False):
                pass


def test_many_threads_never_open_more_than_its_number(database: PostgresDatabase) -> None:
    threads, turns = 12, 40
    begin = threading.Barrier(threads)
    with closing(Pool(database.url, SIZE)) as pool, ThreadPoolExecutor(threads) as others:

        def take_turns() -> set[int]:
            begin.wait(WAIT_SECONDS)
            return {who(pool) for _ in range(turns)}

        seen = [others.submit(take_turns) for _ in range(threads)]
        pids = set[int]().union(*(each.result(WAIT_SECONDS) for each in seen))
        with psycopg.connect(database.url) as looker:
            query = "select count(*) from pg_stat_activity where pid = any (%s)"
            assert looker.execute(query, [list(pids)]).fetchone() == (len(pids),)
    assert len(pids) <= SIZE


def test_who_is_interrupted_while_taking_one_leaves_its_place_to_others(pool: Pool) -> None:
    for _ in range(SIZE + 1):
        who(pool)
        pool._idle[-1].looker = Interrupted()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            who(pool)
    assert pool._open == 0


# -- for asyncio ---------------------------------------------------------------------------------


async def alone(pool: AsyncPool) -> None:
    async with pool.connection(writes=False) as line:
        await line.ask(line.wire.say(WHO, []))


def test_tasks_are_served_in_turn_and_never_more_than_its_number(
    database: PostgresDatabase,
) -> None:
    async def scene() -> tuple[list[str], set[int]]:
        pool = AsyncPool(database.url, 1)
        order: list[str] = []
        pids: set[int] = set()

        async def take_turns(name: str) -> None:
            for _ in range(3):
                async with pool.connection(writes=False) as line:
                    order.append(name)
                    pids.add(line.info.backend_pid)
                    await asyncio.sleep(0)

        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(take_turns(name))
        pool.close()
        return order, pids

    order, pids = asyncio.run(scene())
    assert "".join(order) == "abcabcabc"
    assert len(pids) == 1


def test_a_task_that_is_cancelled_while_it_waits_loses_nobody_s_turn(
    database: PostgresDatabase,
) -> None:
    async def scene() -> int:
        pool = AsyncPool(database.url, 1)
        async with asyncio.timeout(WAIT_SECONDS):
            async with pool.connection(writes=False):
                waits = asyncio.create_task(alone(pool))
                told = asyncio.create_task(alone(pool))
                last = asyncio.create_task(alone(pool))
                await asyncio.sleep(0)  # each of them comes to where it waits
                assert len(pool._waiting) == 3
                waits.cancel()
                await asyncio.wait([waits])
            told.cancel()  # its turn has come, and it has not been there since
            await asyncio.wait([told])
            await last
            await alone(pool)
        assert waits.cancelled()
        assert told.cancelled()
        pool.close()
        return pool._lent

    assert asyncio.run(scene()) == 0


def test_a_task_that_could_not_connect_leaves_its_turn_to_others() -> None:
    async def scene() -> int:
        pool = AsyncPool("postgresql://nobody@127.0.0.1:9/none?connect_timeout=2", 1)
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await alone(pool)
        return pool._lent

    assert asyncio.run(scene()) == 0


def test_few_are_used_of_many_while_they_come_back(database: PostgresDatabase) -> None:
    async def scene() -> set[int]:
        pool = AsyncPool(database.url, 16, few=2, patience=WAIT_SECONDS)
        pids: set[int] = set()

        async def ask() -> None:
            async with pool.connection(writes=False) as line:
                pids.add(line.info.backend_pid)
                await line.ask(line.wire.say(WHO, []))

        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(ask())
        pool.close()
        return pids

    assert len(asyncio.run(scene())) == 2


def test_statements_that_hang_leave_as_many_connections_to_others_as_before(
    database: PostgresDatabase,
) -> None:
    """One tenant's locked table is not all tenants' trouble; and when it is over, it is over."""

    async def scene(other: psycopg.Connection[Any]) -> AsyncPool:
        pool = AsyncPool(database.url, 8, few=2, patience=0.02)
        lock = b"select pg_advisory_xact_lock(7)"

        async def hang() -> None:
            async with pool.connection(writes=False) as line:
                await line.ask(line.wire.say(lock, []))

        async with asyncio.timeout(WAIT_SECONDS):
            hanging = [asyncio.create_task(hang()) for _ in range(5)]
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(alone(pool))
            assert not any(task.done() for task in hanging)
            other.execute("select pg_advisory_unlock(7)")
            await asyncio.gather(*hanging)
            pool._look_who_hangs(asyncio.get_running_loop())
        pool.close()
        return pool

    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(7)")
        pool = asyncio.run(scene(other))
    assert (pool._lent, pool._allowed, pool._out) == (0, 2, {})


def test_who_hangs_while_it_connects_leaves_as_many_to_others_as_before() -> None:
    async def scene() -> int:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
            pool = AsyncPool(url, 8, few=1, patience=0.02)
            takers = [asyncio.create_task(alone(pool)) for _ in range(3)]
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(WAIT_SECONDS):
                callers = [await loop.sock_accept(silent) for _ in takers]
            for taker in takers:
                taker.cancel()
            await asyncio.wait(takers)
            for caller, _address in callers:
                caller.close()
        pool.close()
        return pool._lent

    assert asyncio.run(scene()) == 0


class Interrupted:
    """Ctrl-C, just then."""

    def poll(self, _timeout: int) -> None:
        raise KeyboardInterrupt
