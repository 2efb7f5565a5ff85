"""How an event loop listens on a connection's socket, on either loop that a worker may run on."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest
import uvloop
from psycopg.generators import execute
from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pipeline import Exchange, SocketReader
from freehold.store.postgres.session import AsyncPostgresSession, Statements
from freehold.store.store import AsyncStore

#: If it takes longer, nobody ever hears of it.
WAIT_SECONDS = 120.0

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


def asking(connections: Connections) -> AsyncStore:
    session = AsyncPostgresSession(connections.pool_of_loop, Statements("freehold", "1"))
    return AsyncStore(session)


def reading(ours: socket.socket, heard: list[bytes]) -> Exchange:
    """A piece at a time, until the other side is gone."""
    while True:
        ready = yield Wait.R
        assert ready is Ready.R
        piece = ours.recv(1)
        if not piece:
            return [[(b"".join(heard),)]]
        heard.append(piece)


def test_what_was_said_before_the_end_of_a_connection_is_heard_to_its_end(run: Run) -> None:
    """A server that is stopped hard leaves what we sent unread: that is an error on the socket, and
    uvloop tells of it together with the first piece, and then no more."""
    heard: list[bytes] = []

    async def scene() -> None:
        ours, theirs = socket.socketpair()
        with ours:
            ours.send(b"a question")
            theirs.send(b"gone")
            theirs.close()
            ear = SocketReader(ours.fileno())
            async with asyncio.timeout(WAIT_SECONDS):
                try:
                    await ear.hear(reading(ours, heard))
                except ConnectionResetError:
                    heard.append(b"!")
            ear.end()

    run(scene())
    assert b"".join(heard) == b"gone!"


def test_psycopgs_own_waiting_and_ours_take_turns_on_one_connection(
    database: PostgresDatabase, run: Run
) -> None:
    async def scene() -> list[Any]:
        connections = Connections(database.url)
        store = asking(connections)
        pids = []
        async with asyncio.timeout(WAIT_SECONDS):
            for _ in range(3):
                await store.now()
                async with connections.pool_of_loop().connection(writes=False) as line:
                    pids.append((await (await line.execute("select 1")).fetchone(), line.closed))
        connections.close_here()
        return pids

    assert run(scene()) == [((1,), False)] * 3


def test_an_idle_connection_that_the_server_ends_keeps_no_loop_busy(
    database: PostgresDatabase, run: Run
) -> None:
    async def scene() -> tuple[int, int]:
        connections = Connections(database.url)
        store = asking(connections)
        await store.now()
        async with connections.pool_of_loop().connection(writes=False) as line:
            first, ear = line.info.backend_pid, line._ear
            assert ear is not None
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [first])
        async with asyncio.timeout(WAIT_SECONDS):
            while ear._is_open:  # noqa: ASYNC110 (a turn of the loop at a time)
                await asyncio.sleep(0)
        await store.now()  # on another one
        async with connections.pool_of_loop().connection(writes=False) as line:
            second = line.info.backend_pid
        connections.close_here()
        return first, second

    first, second = run(scene())
    assert first != second


def test_a_connection_that_breaks_under_a_statement_is_told_at_once(
    database: PostgresDatabase, run: Run
) -> None:
    async def scene() -> None:
        connections = Connections(database.url)
        pool = connections.pool_of_loop()
        try:
            async with asyncio.timeout(WAIT_SECONDS), pool.connection(writes=False) as line:
                await line.ask(_talking(line.pgconn))
        finally:
            connections.close_here()

    with pytest.raises(StoreUnavailable):
        run(scene())


def _talking(pgconn: Any) -> Exchange:
    pgconn.send_query(b"select pg_terminate_backend(pg_backend_pid()), pg_sleep(60)")
    (result,) = yield from execute(pgconn)
    raise psycopg.OperationalError(result.get_error_message())


async def _others_are_heard() -> None:
    """Of the loop that runs: those who are given the numbers that were free just now."""
    pairs = [socket.socketpair() for _ in range(8)]
    for ours, theirs in [*pairs, *((theirs, ours) for ours, theirs in pairs)]:
        ours.setblocking(False)
        hearing = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(ours, 1))
        await asyncio.sleep(0)  # it listens
        theirs.send(b"x")
        async with asyncio.timeout(WAIT_SECONDS):
            assert await hearing == b"x"
    for each in itertools.chain(*pairs):
        each.close()


def test_who_closes_during_a_statement_leaves_no_ear_behind(
    database: PostgresDatabase, run: Run
) -> None:
    async def scene() -> None:
        connections = Connections(database.url)
        async with connections.pool_of_loop().connection(writes=False) as line:
            await line.ask(line.wire.say(b"select 1", []))
            connections.close_here()
            await line.ask(line.wire.say(b"select 2", []))
        assert line.closed
        await _others_are_heard()

    run(scene())


@pytest.mark.filterwarnings("ignore:.*was deleted while still open")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_connection_that_nobody_holds_any_more_leaves_no_ear_behind(
    database: PostgresDatabase, run: Run
) -> None:
    async def ask() -> None:
        pool = Connections(database.url).pool_of_loop()
        async with pool.connection(writes=False) as line:
            await line.ask(line.wire.say(b"select 1", []))

    async def scene() -> None:
        await ask()
        gc.collect()
        await _others_are_heard()

    run(scene())


def test_a_socket_that_a_child_holds_too_keeps_no_loop_busy_when_it_breaks(
    database: PostgresDatabase, run: Run
) -> None:
    async def scene() -> tuple[int, int]:
        connections = Connections(database.url)
        await asyncio.sleep(0.001)  # uvloop's own things are there only when it has waited once
        before, held = _listened_to(), -1
        try:
            async with connections.pool_of_loop().connection(writes=False) as line:
                held = os.dup(line.fileno())  # as in a forked child
                await line.ask(_talking(line.pgconn))
        except StoreUnavailable:
            return before, _listened_to()
        finally:
            os.close(held)
            connections.close_here()
        raise AssertionError("it did not break")

    before, after = run(scene())
    assert after == before


def _listened_to() -> int:
    """How many sockets the kernel watches for the loops of this process, where Linux says so."""
    files = Path("/proc/self/fdinfo").glob("*")
    return sum(each.read_text().count("tfd:") for each in files if each.exists())


def test_where_no_more_files_can_be_opened_the_store_is_away_for_a_while(
    database: PostgresDatabase, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(_number: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scene() -> None:
        connections = Connections(database.url)
        store = asking(connections)
        with monkeypatch.context() as patch:
            patch.setattr(os, "dup", no_more)
            with pytest.raises(StoreUnavailable, match="files"):
                await store.now()
        await store.now()
        connections.close_here()

    run(scene())
