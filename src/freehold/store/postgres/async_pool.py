"""Connections that are kept open, for event loops: a pool for each of them.

One reader stays registered on the socket between statements: registering and removing it for each
of them costs as much as the rest of asyncio's work for it. It is removed when psycopg's own waiting
takes over, when the server ends the connection, or when the connection is closed.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import weakref
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import _WaitTimeout
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from freehold.clock import monotonic
from freehold.errors import StoreUnavailable
from freehold.store.postgres.conninfo import unreachable
from freehold.store.postgres.errors import NoAnswer, cancellation_behind
from freehold.store.postgres.pipeline import Exchange, Pipeline
from freehold.store.postgres.pool import ConnectionRecipe, store_error
from freehold.store.statements import Rows

#: A statement that takes longer than this counts as stalled.
STALL_SECONDS = 0.1
#: A server that has not canceled a statement by then is abandoned: see also `STUCK_SECONDS`.
_CANCEL_SECONDS = 2.0

T = TypeVar("T")


class SocketReader:
    """Drives exchanges on a duplicate of the connection's file descriptor.

    libpq closes its own descriptor when the server is gone, or when the connection is garbage. An
    event loop still registered on that number would miss the events of the next file that gets it.
    If a forked child has the socket open too, the loop would even report its end for ever, and the
    reader could no longer be removed.
    """

    _is_reading = _is_writing = False
    #: True as long as it has no descriptor of its own.
    _is_closed = True

    def __init__(self, socket: int) -> None:
        try:
            self._socket = os.dup(socket)
        except OSError as error:  # before anything was sent
            raise StoreUnavailable(f"no more files can be opened ({error})") from error
        self._is_closed = False
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        #: The exchange under way, and what its caller awaits.
        self._exchange: Exchange | None = None
        self._rows: asyncio.Future[list[Rows]] | None = None
        #: How long the exchange may take, and until when.
        self._limit: float | None = None
        self._expires_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        self.stop_reading()
        self._await_writable(False)
        if not self._is_closed:
            self._is_closed = True
            os.close(self._socket)
            if self._timer is not None:
                self._timer.cancel()

    def stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)

    def _start_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._socket, self._on_readable)

    async def run(self, exchange: Exchange, seconds: float | None = None) -> list[Rows]:
        """Raises NoAnswer after so many seconds."""
        self._start_reading()
        self._limit = seconds
        if seconds is not None:
            self._expires_at = self._loop.time() + seconds
            if self._expires_at < self._timer_at:
                self._start_timer()
        try:
            wanted = next(exchange)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        self._exchange, self._rows = exchange, self._loop.create_future()
        self._await_writable(bool(wanted & Wait.W))
        try:
            return await self._rows
        finally:
            self._exchange = self._rows = None
            self._await_writable(False)

    def _advance(self, state: Ready) -> None:
        """Reads here, not in the task that waits for the rows: the loop would report the same input
        once more before that task runs, and its next exchange would take that for its own."""
        exchange, rows = self._exchange, self._rows
        if exchange is None or rows is None or rows.done():
            return
        try:
            wanted = exchange.send(state)
        except StopIteration as end:
            rows.set_result(end.value)
        except Exception as error:
            rows.set_exception(error)
            del rows  # which has the error, whose traceback has this frame: a cycle
        else:
            self._await_writable(bool(wanted & Wait.W))
            # More is to come. If the server has ended the connection after the part that was
            # read, uvloop has reported both at once and reads no more: register again.
            self.stop_reading()
            self._start_reading()

    def _await_writable(self, wanted: bool) -> None:
        if wanted and not self._is_writing:
            self._loop.add_writer(self._socket, self._advance, Ready.W)
        elif self._is_writing and not wanted:
            self._loop.remove_writer(self._socket)
        self._is_writing = wanted

    def _start_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._expires_at
        self._timer = self._loop.call_at(self._timer_at, self._check_limit)

    def _check_limit(self) -> None:
        """One timer for all statements of a connection: one for each would cost more than the rest
        of the wait. It runs on while there are statements."""
        self._timer, self._timer_at = None, math.inf
        if self._rows is None or self._limit is None:
            return
        if self._loop.time() < self._expires_at:
            self._start_timer()
        elif not self._rows.done():
            self._rows.set_exception(NoAnswer(self._limit))

    def _on_readable(self) -> None:
        if self._exchange is not None:
            self._advance(Ready.R)
        elif self._poll.poll(0):  # for no exchange: the server has ended the connection
            self.stop_reading()


class AsyncPooledConnection(AsyncConnection[Any]):
    """As `PooledConnection`, with a reader that stays registered on the socket."""

    group_pipeline: Pipeline
    socket_poll: select.poll
    answer_seconds: float | None = None
    checked_schemas: set[str]
    host_and_port: tuple[str, int]
    _socket_reader: SocketReader | None = None

    async def run_exchange(self, exchange: Exchange, seconds: float | None = None) -> list[Rows]:
        """Like `wait`, which also wakes up every tenth of a second to check for an interrupt: an
        event loop needs no such check."""
        if self._socket_reader is None:
            self._socket_reader = SocketReader(self.pgconn.socket)
        try:
            return await self._socket_reader.run(exchange, seconds)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._cancel_statement(self._socket_reader, exchange)
            raise

    async def wait(
        self, gen: Generator[Any, Any, T], interval: float = 0.1, timeout: float | None = None
    ) -> T:
        """psycopg's own, which registers a reader of its own each time."""
        if self._socket_reader is not None:
            self._socket_reader.stop_reading()
        if timeout is not None or self.answer_seconds is None:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, self.answer_seconds)
        except _WaitTimeout:
            self.abort()  # psycopg would send a rollback and wait for that
            raise NoAnswer(self.answer_seconds) from None

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:
        """psycopg would go on waiting for a frozen server, and a canceled handler would not end."""
        try:
            await super().cancel_safe(timeout=min(timeout, _CANCEL_SECONDS))
        except psycopg.Error:
            self.abort()
            raise

    async def _cancel_statement(self, reader: SocketReader, exchange: Exchange) -> None:
        """The server still executes it, and its result must not be taken for that of the next."""
        reader.stop_reading()  # input may have arrived that no exchange waited for any more
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.cancel_safe(timeout=_CANCEL_SECONDS)
                await reader.run(exchange)
        except TimeoutError:
            self.abort()
        except psycopg.Error:
            pass  # as expected: the statement was canceled, or the connection broke

    def abort(self) -> None:
        """Close at once, without waiting for the server."""
        if self._socket_reader is not None:
            self._socket_reader.close()
        self.pgconn.finish()


class AsyncPool:
    """For one event loop. Waiting tasks are served in order: otherwise a task that acquires again
    right after its release would starve the others.

    ``soft_limit``: how many are borrowed at a time, not counting those with a stalled statement.
    With hundreds of schemas, few connections are faster: the server caches every schema for each
    connection, and statements that wait grow into larger groups.
    """

    def __init__(
        self,
        url: str,
        size: int,
        *,
        soft_limit: int | None = None,
        stall_seconds: float = STALL_SECONDS,
        answer_seconds: float | None = None,
        internal: bool = True,
    ) -> None:
        self._url = url
        self._recipe = ConnectionRecipe(url, answer_seconds, internal=internal)
        self._idle: list[AsyncPooledConnection] = []
        self._is_closed = False
        self._size = size
        self._soft_limit = min(size, soft_limit or size)
        self._stall_seconds = stall_seconds
        #: How many are borrowed, how many may be at present, and the tasks that wait.
        self._borrowed = 0
        self._limit = self._soft_limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: When each was borrowed, if there is a soft limit; and when each connecting began.
        self._busy_since: dict[object, float] = {}
        self._checks_stalls = False

    def connection(self, *, writes: bool) -> AsyncBorrowedConnection:
        return AsyncBorrowedConnection(self, writes)

    async def acquire(self) -> AsyncPooledConnection:
        if self._borrowed < self._limit:
            self._borrowed += 1
        else:
            await self._wait_for_admission()
        try:
            while self._idle:
                connection = self._idle.pop()
                if self._recipe.is_usable(connection):
                    break
                connection.abort()
            else:
                connection = await self._connect_timed()
        except BaseException:
            self._uncount()
            raise
        if self._soft_limit < self._size:
            self._busy_since[connection] = monotonic()
        return connection

    async def _connect_timed(self) -> AsyncPooledConnection:
        """Connecting may stall too."""
        connecting = object()
        self._busy_since[connecting] = monotonic()
        try:
            return await self._connect()
        finally:
            del self._busy_since[connecting]

    async def _wait_for_admission(self) -> None:
        loop = asyncio.get_running_loop()
        admitted = loop.create_future()
        self._waiting.append(admitted)
        if self._soft_limit < self._size and not self._checks_stalls:
            self._checks_stalls = True
            loop.call_later(self._stall_seconds, self._check_stalls, loop)
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():  # it had been admitted just before
                self._uncount()
            raise

    def _uncount(self) -> None:
        self._borrowed -= 1
        if self._waiting:
            self._admit_waiting()

    def _admit_waiting(self) -> None:
        """The task that has waited longest first."""
        while self._waiting and self._borrowed < self._limit:
            admitted = self._waiting.popleft()
            if not admitted.done():  # nor canceled
                admitted.set_result(None)
                self._borrowed += 1

    def _check_stalls(self, loop: asyncio.AbstractEventLoop) -> None:
        """Repeats itself as long as a task waits or a statement stalls."""
        begun = monotonic() - self._stall_seconds
        stalled = sum(since <= begun for since in self._busy_since.values())
        self._limit = min(self._size, self._soft_limit + stalled)
        self._admit_waiting()
        self._checks_stalls = bool(self._waiting or stalled)
        if self._checks_stalls:
            loop.call_later(self._stall_seconds, self._check_stalls, loop)

    async def _connect(self) -> AsyncPooledConnection:
        info = self._recipe.info
        try:
            connection = await AsyncPooledConnection.connect(info, autocommit=True)
        except psycopg.Error as error:
            if self._recipe.drop_options(info, error):
                return await self._connect()
            raise unreachable(self._url, error) from None
        self._recipe.set_up(connection)
        return connection

    def release(self, connection: AsyncPooledConnection) -> None:
        self._busy_since.pop(connection, None)
        if connection.group_pipeline.is_idle and not self._is_closed:
            self._idle.append(connection)
        else:
            connection.abort()
        self._borrowed -= 1
        if self._waiting:
            self._admit_waiting()

    def release_after(
        self, error: BaseException, connection: AsyncPooledConnection, *, writes: bool
    ) -> BaseException:
        """Returns the error as Freehold's."""
        translated_error = store_error(error, writes)
        if isinstance(error, NoAnswer):
            self._recipe.try_last(connection.host_and_port)
        if self._recipe.closes_after(translated_error):
            connection.abort()  # so that `release` does not keep it
        self.release(connection)
        return cancellation_behind(error) or translated_error

    def close(self) -> None:
        """Also after the end of the loop. A borrowed connection is closed at its release."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().abort()


class AsyncBorrowedConnection:
    """Acquires a connection of the pool and releases it."""

    __slots__ = ("_connection", "_pool", "_writes")

    def __init__(self, pool: AsyncPool, writes: bool) -> None:
        self._pool = pool
        self._writes = writes

    async def __aenter__(self) -> AsyncPooledConnection:
        self._connection = await self._pool.acquire()
        return self._connection

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self._pool.release(self._connection)
            return
        translated_error = self._pool.release_after(error, self._connection, writes=self._writes)
        if translated_error is not error:
            raise translated_error from error


class LoopPools:
    """One pool for each event loop: asyncio's connections belong to the loop that opened them."""

    def __init__(
        self, url: str, size: int, *, answer_seconds: float | None = None, internal: bool = True
    ) -> None:
        self._new = partial(AsyncPool, url, size, answer_seconds=answer_seconds, internal=internal)
        self._soft_limit: int | None = None
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool]
        self._pools = weakref.WeakKeyDictionary()
        #: The loop of the last call and its pool: nearly always those of the next call, too.
        self._latest: tuple[Callable[[], object], AsyncPool | None] = (lambda: None, None)

    def current(self) -> AsyncPool:
        """The pool of the running loop."""
        loop = asyncio.get_running_loop()
        latest, pool = self._latest
        if pool is not None and latest() is loop:
            return pool
        pool = self._pools.get(loop)
        if pool is None:
            self.close_ended()
            pool = self._pools[loop] = self._new(soft_limit=self._soft_limit)
        self._latest = weakref.ref(loop), pool
        return pool

    def set_soft_limit(self, soft_limit: int) -> None:
        """For the pools of later loops: see `AsyncPool`."""
        self._soft_limit = soft_limit

    def close_current(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            self._latest = (lambda: None, None)
            pool.close()

    def close_ended(self) -> None:
        """A loop that ended without aclose() left its connections open."""
        for known in self._pools.keyrefs():  # a list: loops of other threads come and go meanwhile
            loop = known()
            if loop is not None and loop.is_closed():
                pool = self._pools.pop(loop, None)
                if pool is not None:
                    pool.close()
