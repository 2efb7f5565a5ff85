"""The reader on a connection's socket, on both event loops that a worker may run on."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import os
import socket
import weakref
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest
import uvloop
from psycopg.generators import execute
from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.postgres.async_pool import SocketReader
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.errors import NoAnswer
from freehold.store.postgres.pipeline import Exchange
from freehold.store.postgres.session import AsyncPipelinedSession, Statements
from freehold.store.store import AsyncStore

#: An event that has not arrived by then never will.
WAIT_SECONDS = 120.0

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


def store_on(connections: Connections) -> AsyncStore:
    session = AsyncPipelinedSession(connections.pool_of_loop, Statements("freehold", "1"))
    return AsyncStore(session)


def reading(ours: socket.socket, received: list[bytes]) -> Exchange:
    """Byte by byte, until the other side closes."""
    while True:
        ready = yield Wait.R
        assert ready is Ready.R
        piece = ours.recv(1)
        if not piece:
            return [[(b"".join(received),)]]
        received.append(piece)


def reading_one(ours: socket.socket) -> Exchange:
    yield Wait.R
    return [[(ours.recv(1),)]]


class Refused(Exception):
    """Like psycopg's errors, but weak references to it are possible."""


def refused() -> Exchange:
    yield Wait.R
    raise Refused


def test_data_sent_before_the_end_of_a_connection_is_read_completely(run: Run) -> None:
    """A server that is stopped hard leaves our data unread, which is an error on the socket. uvloop
    reports it together with the first byte, and reports nothing after that."""
    received: list[bytes] = []

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with ours:
            ours.send(b"a statement")
            theirs.send(b"gone")
            theirs.close()
            reader = SocketReader(ours.fileno())
            async with asyncio.timeout(WAIT_SECONDS):
                try:
                    await reader.run(reading(ours, received))
                except ConnectionResetError:
                    received.append(b"!")
            reader.close()

    run(scenario())
    assert b"".join(received) == b"gone!"


def test_input_of_one_exchange_is_not_reported_to_the_next(run: Run) -> None:
    """Which would read nothing, and register its socket with the loop again."""

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            reader = SocketReader(ours.fileno())
            async with asyncio.timeout(WAIT_SECONDS):
                for _ in range(20):
                    asyncio.get_running_loop().call_later(0.001, theirs.send, b"a")
                    assert await reader.run(reading_one(ours)) == [[(b"a",)]]
            reader.close()

    run(scenario())


def test_an_error_of_an_exchange_is_freed_with_its_last_reference(run: Run) -> None:
    """Its traceback has the values of the statement, and what refers to the connection. In a cycle
    they would stay until the garbage collector looks at the oldest objects."""
    freed: list[bool] = []

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = SocketReader(ours.fileno())
            theirs.send(b"a")
            try:
                await reader.run(refused())
            except Refused as error:
                reference = weakref.ref(error)
            await asyncio.sleep(0)  # the loop has its future until the end of the turn
            freed.append(reference() is None)
            reader.close()

    gc.disable()
    try:
        run(scenario())
    finally:
        gc.enable()
    assert freed == [True]


def test_a_limit_ends_an_exchange_and_not_the_one_before_it(run: Run) -> None:
    """One timer serves all exchanges of a connection."""

    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = SocketReader(ours.fileno())
            theirs.send(b"a")
            await reader.run(reading_one(ours), 600.0)
            timer = reader._timer
            assert timer is not None  # of the first exchange
            unanswered = asyncio.ensure_future(reader.run(reading_one(ours), 1200.0))
            await asyncio.sleep(0)
            assert reader._timer is timer
            timer.cancel()
            reader._check_limit()  # as it would run after 600 s
            assert reader._timer is not None
            await asyncio.sleep(0)
            assert not unanswered.done()
            reader._expires_at = 0.0
            reader._check_limit()
            with pytest.raises(NoAnswer, match="within 1200 s"):
                await unanswered
            with pytest.raises(NoAnswer, match=r"within 0\.1 s"):  # although the timer is of 1200 s
                await reader.run(reading_one(ours), 0.1)
            reader.close()

    run(scenario())


def test_wait_of_psycopg_and_run_exchange_alternate_on_one_connection(
    database: PostgresDatabase, run: Run
) -> None:
    async def scenario() -> list[Any]:
        connections = Connections(database.url)
        store = store_on(connections)
        pids = []
        async with asyncio.timeout(WAIT_SECONDS):
            for _ in range(3):
                await store.now()
                async with connections.pool_of_loop().connection(writes=False) as connection:
                    pids.append(
                        (await (await connection.execute("select 1")).fetchone(), connection.closed)
                    )
        connections.close_current_loop()
        return pids

    assert run(scenario()) == [((1,), False)] * 3


def test_an_idle_connection_that_the_server_ends_does_not_spin_the_loop(
    database: PostgresDatabase, run: Run
) -> None:
    async def scenario() -> tuple[int, int]:
        connections = Connections(database.url)
        store = store_on(connections)
        await store.now()
        async with connections.pool_of_loop().connection(writes=False) as connection:
            first, reader = connection.info.backend_pid, connection._socket_reader
            assert reader is not None
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s, 5000)", [first])
        async with asyncio.timeout(WAIT_SECONDS):
            while reader._is_reading:  # noqa: ASYNC110 (a turn of the loop at a time)
                await asyncio.sleep(0)
        await store.now()  # on another connection
        async with connections.pool_of_loop().connection(writes=False) as connection:
            second = connection.info.backend_pid
        connections.close_current_loop()
        return first, second

    first, second = run(scenario())
    assert first != second


def test_a_connection_that_breaks_during_a_statement_raises_at_once(
    database: PostgresDatabase, run: Run
) -> None:
    async def scenario() -> None:
        connections = Connections(database.url)
        pool = connections.pool_of_loop()
        try:
            async with asyncio.timeout(WAIT_SECONDS), pool.connection(writes=False) as connection:
                await connection.run_exchange(_terminating_exchange(connection.pgconn))
        finally:
            connections.close_current_loop()

    with pytest.raises(StoreUnavailable):
        run(scenario())


def _terminating_exchange(pgconn: Any) -> Exchange:
    pgconn.send_query(b"select pg_terminate_backend(pg_backend_pid()), pg_sleep(60)")
    (result,) = yield from execute(pgconn)
    raise psycopg.OperationalError(result.get_error_message())


async def _new_sockets_are_readable() -> None:
    """Sockets that get the descriptors that were just closed, on the running loop."""
    pairs = [socket.socketpair() for _ in range(8)]
    for ours, theirs in [*pairs, *((theirs, ours) for ours, theirs in pairs)]:
        ours.setblocking(False)
        receiving = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(ours, 1))
        await asyncio.sleep(0)  # its reader is registered
        theirs.send(b"x")
        async with asyncio.timeout(WAIT_SECONDS):
            assert await receiving == b"x"
    for each in itertools.chain(*pairs):
        each.close()


def test_closing_the_pool_during_a_statement_leaves_no_reader_registered(
    database: PostgresDatabase, run: Run
) -> None:
    async def scenario() -> None:
        connections = Connections(database.url)
        async with connections.pool_of_loop().connection(writes=False) as connection:
            await connection.run_exchange(connection.group_pipeline.exchange_one(b"select 1", []))
            connections.close_current_loop()
            await connection.run_exchange(connection.group_pipeline.exchange_one(b"select 2", []))
        assert connection.closed
        await _new_sockets_are_readable()

    run(scenario())


@pytest.mark.filterwarnings("ignore:.*was deleted while still open")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_garbage_collected_connection_leaves_no_reader_registered(
    database: PostgresDatabase, run: Run
) -> None:
    async def use_connection() -> None:
        pool = Connections(database.url).pool_of_loop()
        async with pool.connection(writes=False) as connection:
            await connection.run_exchange(connection.group_pipeline.exchange_one(b"select 1", []))

    async def scenario() -> None:
        await use_connection()
        gc.collect()
        await _new_sockets_are_readable()

    run(scenario())


def test_a_broken_socket_that_a_child_holds_too_does_not_spin_the_loop(
    database: PostgresDatabase, run: Run
) -> None:
    async def scenario() -> tuple[int, int]:
        connections = Connections(database.url)
        await asyncio.sleep(0.001)  # uvloop opens its own descriptors when it first waits
        before, inherited = _watched_sockets(), -1
        try:
            async with connections.pool_of_loop().connection(writes=False) as connection:
                inherited = os.dup(connection.fileno())  # as in a forked child
                await connection.run_exchange(_terminating_exchange(connection.pgconn))
        except StoreUnavailable:
            return before, _watched_sockets()
        finally:
            os.close(inherited)
            connections.close_current_loop()
        raise AssertionError("it did not break")

    before, after = run(scenario())
    assert after == before


def _watched_sockets() -> int:
    """How many sockets the kernel watches for the loops of this process; on Linux only."""
    files = Path("/proc/self/fdinfo").glob("*")
    return sum(each.read_text().count("tfd:") for each in files if each.exists())


def test_too_many_open_files_make_the_store_unavailable_for_a_while(
    database: PostgresDatabase, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(_number: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async def scenario() -> None:
        connections = Connections(database.url)
        store = store_on(connections)
        with monkeypatch.context() as patch:
            patch.setattr(os, "dup", no_more)
            with pytest.raises(StoreUnavailable, match="files"):
                await store.now()
        await store.now()
        connections.close_current_loop()

    run(scenario())
