"""Connections that are kept open, for event loops: a pool for each of them."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial

import psycopg

from freehold.clock import monotonic
from freehold.store.postgres.pipeline import AsyncPooledConnection, NoAnswer
from freehold.store.postgres.pool import ConnectionRecipe, store_error, unreachable

#: A statement that takes longer than this counts as stalled.
STALL_SECONDS = 0.1


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
        return _cancellation_behind(error) or translated_error

    def close(self) -> None:
        """Also after the end of the loop. A borrowed connection is closed at its release."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().abort()


def _cancellation_behind(error: BaseException) -> asyncio.CancelledError | None:
    """A canceled psycopg waits until the server has canceled too. If the connection breaks
    meanwhile, it raises that error instead, and a part of a worker that continues after errors
    would never end."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, asyncio.CancelledError):
            return None if seen is error else seen
        seen = seen.__cause__ or seen.__context__
    return None


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
