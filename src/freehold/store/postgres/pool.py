"""Connections kept for the next use.

Smaller than a general pool on purpose: no threads, safe after a fork, and an unreachable
server is an error at once and not a waiting time. A connection that broke is thrown away;
one that the server has closed meanwhile is noticed before it is used.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import threading
import weakref
from collections import deque

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ConnStatus

from freehold.clock import monotonic
from freehold.errors import BadSettings, StoreReadOnly, StoreUnavailable
from freehold.store.postgres.errors import Forgotten, translation
from freehold.store.postgres.pipeline import AsyncPooledConnection, Pipeline, PooledConnection
from freehold.store.url import redacted

#: Found by timeouts, not by waiting for ever: half-open connections.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "freehold",
}

#: So long a statement may take until it is thought to hang.
PATIENCE_SECONDS = 0.1


def conninfo(url: str) -> str:
    """The URL with timeouts where it names none."""
    if url.partition("?")[0].count("@") > 1:
        raise BadSettings(
            f"{redacted(url)!r} has more than one '@': write those of a password as %40"
        )
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # libpq quotes the part that it did not understand, which can be the password.
        why = re.sub(r'".*"', "…", " ".join(str(error).split()))
        raise BadSettings(f"{redacted(url)!r} is not a PostgreSQL URL: {why}") from None
    # What follows the first ":" of an unescaped password looks like a port.
    if not re.fullmatch(r"[0-9,]*", str(given.get("port") or "")):
        raise BadSettings(
            f"{redacted(url)!r} is not a PostgreSQL URL: its port is no number; write a '/' of a "
            "password as %2F"
        )
    return make_conninfo(**{**_DEFAULTS, **{k: str(v) for k, v in given.items()}})


class ConnectionRecipe:
    """How to connect. On connections of our own, plans are made once and kept: making one for a
    claim takes four times as long as the claim itself, and the tests read the kept ones.

    A pooler that gives each transaction whichever server connection is free may take no options,
    and what was prepared on one connection is not known on the next: it is met without both.
    """

    def __init__(self, url: str, *, ours: bool) -> None:
        plain = conninfo(url)
        if ours:  # the encoding in which a `Wire` writes, whatever the database's own is
            plain = make_conninfo(plain, client_encoding="utf8")
        options = conninfo_to_dict(plain).get("options") or ""
        kept = make_conninfo(plain, options=f"{options} -c plan_cache_mode=force_generic_plan")
        self.info = kept if ours else plain
        self._plain = plain
        self._prepares = True

    def is_refused(self, info: str, error: psycopg.Error) -> bool:
        """Whether it is worth trying again, without options. Several may be told so at once."""
        if info == self._plain or "startup parameter" not in str(error):
            return False
        self.info = self._plain
        self._prepares = False
        return True

    def arrange(self, connection: PooledConnection | AsyncPooledConnection) -> None:
        """As every new connection is to be."""
        if not self._prepares:
            connection.prepare_threshold = None
        connection.wire = Pipeline(connection)
        connection.looker = select.poll()  # unlike select(), for any number of open files
        connection.looker.register(connection.fileno(), select.POLLIN)

    def is_usable(self, connection: PooledConnection | AsyncPooledConnection) -> bool:
        """An idle connection that has something to read was closed by the server."""
        if connection.pgconn.status == ConnStatus.BAD or connection.looker.poll(0):
            return False
        return self._prepares or connection.prepare_threshold is None

    def is_left_by(self, error: BaseException) -> bool:
        """Whether the connection that met this error is no use any more."""
        if isinstance(error, Forgotten):
            self._prepares = False
        # After a fail-over the next one may reach the new primary.
        return isinstance(error, Forgotten | StoreReadOnly)


def _unreachable(url: str, error: psycopg.Error) -> StoreUnavailable:
    text = " ".join(str(error).split()).partition(" Is the server running")[0]
    # What the server itself says needs no such question.
    ask = "" if "FATAL:" in text else "; is the server running?"
    return StoreUnavailable(f"cannot connect to {redacted(url)}: {text}{ask}")


def _stop_behind(error: BaseException) -> asyncio.CancelledError | None:
    """A cancelled psycopg waits until the server has cancelled too. If the connection breaks
    meanwhile, it raises that instead, and a part of a worker that carries on after errors would
    never end."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, asyncio.CancelledError):
            return None if seen is error else seen
        seen = seen.__cause__ or seen.__context__
    return None


def _ours(error: BaseException, writes: bool) -> BaseException:
    return translation(error, writes=writes) if isinstance(error, psycopg.Error) else error


class Pool:
    """For threads. Taking a connection that is idle needs no lock: this is on every statement's
    way, and a list gives each of its items once."""

    def __init__(self, url: str, size: int, *, ours: bool = True) -> None:
        self._url = url
        self._way = ConnectionRecipe(url, ours=ours)
        self._size = size
        self.begin_anew()
        _every.add(self)

    def begin_anew(self) -> None:
        """Also in a forked child: the parent's connections are the parent's, and so are the
        places and locks that its threads hold."""
        self._idle: list[PooledConnection] = []
        #: Connections that are idle, lent, or being made; and how many wait for one of them.
        self._open = self._waiting = 0
        # Taken as it is, not by the condition: Ctrl-C in the midst of that would leave it taken.
        self._lock = threading.Lock()
        self._change = threading.Condition(self._lock)

    def connection(self, *, writes: bool) -> BorrowedConnection:
        return BorrowedConnection(self, writes)

    def take(self) -> PooledConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._has_place():
                    return self._connect()
                continue
            try:
                if self._way.is_usable(connection):
                    return connection
            except BaseException:  # Ctrl-C: nobody will give it back
                self._drop(connection)
                raise
            self._drop(connection)

    def _has_place(self) -> bool:
        """For one more; if there is none, wait until one is idle or gone."""
        with self._lock:
            # Counted before the last look: who gives one back looks whether somebody waits.
            self._waiting += 1
            try:
                while not self._idle:
                    if self._open < self._size:
                        self._open += 1
                        return True
                    self._change.wait()
                return False
            finally:
                self._waiting -= 1

    def _connect(self) -> PooledConnection:
        try:
            while True:
                info = self._way.info
                try:
                    connection = PooledConnection.connect(info, autocommit=True)
                except psycopg.Error as error:
                    if not self._way.is_refused(info, error):
                        raise _unreachable(self._url, error) from None
                else:
                    self._way.arrange(connection)
                    return connection
        except BaseException:
            self._free_place()
            raise

    def give_back(self, connection: PooledConnection) -> None:
        if not connection.wire.is_quiet:
            self._drop(connection)
            return
        self._idle.append(connection)
        if self._waiting:
            with self._lock:
                self._change.notify()

    def give_back_after(
        self, error: BaseException, connection: PooledConnection, *, writes: bool
    ) -> BaseException:
        """The error in our words."""
        ours = _ours(error, writes)
        if self._way.is_left_by(ours):
            self._drop(connection)
        else:
            self.give_back(connection)
        return ours

    def _drop(self, connection: PooledConnection) -> None:
        try:
            connection.close()
        finally:
            self._free_place()

    def _free_place(self) -> None:
        with self._lock:
            self._open -= 1
            self._change.notify()

    def close(self) -> None:
        while self._idle:
            self._drop(self._idle.pop())


def _reset_after_fork() -> None:
    for pool in tuple(_every):
        pool.begin_anew()


_every: weakref.WeakSet[Pool] = weakref.WeakSet()
os.register_at_fork(after_in_child=_reset_after_fork)


class BorrowedConnection:
    """A connection of the pool, for a while. Not a generator: this is on every statement's way."""

    __slots__ = ("_connection", "_pool", "_writes")

    def __init__(self, pool: Pool, writes: bool) -> None:
        self._pool = pool
        self._writes = writes

    def __enter__(self) -> PooledConnection:
        self._connection = self._pool.take()
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self._pool.give_back(self._connection)
            return
        ours = self._pool.give_back_after(error, self._connection, writes=self._writes)
        if ours is not error:
            raise ours from error


class AsyncPool:
    """For one event loop. Who waits is served in turn: a task that takes its connection again as
    soon as it has given it back would never let another have it.

    ``few``: so many are lent at a time, besides those whose statement hangs. Where hundreds of
    schemas share them, few are faster: on each connection the server has to get to know every
    schema, and what waits for its turn grows into larger batches.
    """

    def __init__(
        self,
        url: str,
        size: int,
        *,
        few: int | None = None,
        patience: float = PATIENCE_SECONDS,
        ours: bool = True,
    ) -> None:
        self._url = url
        self._way = ConnectionRecipe(url, ours=ours)
        self._idle: list[AsyncPooledConnection] = []
        self._is_closed = False
        self._size = size
        self._few = min(size, few or size)
        self._patience = patience
        #: How many are lent, how many may be for now, and who waits because so many are.
        self._lent = 0
        self._allowed = self._few
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: Which are lent since when, where that matters.
        self._out: dict[object, float] = {}
        self._looks = False

    def connection(self, *, writes: bool) -> AsyncBorrowedConnection:
        return AsyncBorrowedConnection(self, writes)

    async def take(self) -> AsyncPooledConnection:
        if self._lent < self._allowed:
            self._lent += 1
        else:
            await self._turn()
        try:
            connection = self._idle_one() or await self._connected()
        except BaseException:
            self._make_room()
            raise
        if self._few < self._size:
            self._out[connection] = monotonic()
        return connection

    async def _connected(self) -> AsyncPooledConnection:
        """Who connects may hang there too."""
        connecting = object()
        self._out[connecting] = monotonic()
        try:
            return await self._connect()
        finally:
            del self._out[connecting]

    def _idle_one(self) -> AsyncPooledConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._way.is_usable(connection):
                return connection
            connection.drop()
        return None

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if self._few < self._size and not self._looks:
            self._looks = True
            loop.call_later(self._patience, self._look_who_hangs, loop)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had come just before
                self._make_room()
            raise

    def _make_room(self) -> None:
        """For who has waited longest, or else for the next."""
        self._lent -= 1
        if self._waiting:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting and self._lent < self._allowed:
            turn = self._waiting.popleft()
            if not turn.done():  # nor cancelled
                turn.set_result(None)
                self._lent += 1

    def _look_who_hangs(self, loop: asyncio.AbstractEventLoop) -> None:
        """Again and again, as long as somebody waits or hangs."""
        begun = monotonic() - self._patience
        hanging = sum(since <= begun for since in self._out.values())
        self._allowed = min(self._size, self._few + hanging)
        self._pass_on()
        self._looks = bool(self._waiting or hanging)
        if self._looks:
            loop.call_later(self._patience, self._look_who_hangs, loop)

    async def _connect(self) -> AsyncPooledConnection:
        info = self._way.info
        try:
            connection = await AsyncPooledConnection.connect(info, autocommit=True)
        except psycopg.Error as error:
            if self._way.is_refused(info, error):
                return await self._connect()
            raise _unreachable(self._url, error) from None
        self._way.arrange(connection)
        return connection

    def give_back(self, connection: AsyncPooledConnection) -> None:
        self._out.pop(connection, None)
        if connection.wire.is_quiet and not self._is_closed:
            self._idle.append(connection)
        else:
            connection.drop()
        self._make_room()

    def give_back_after(
        self, error: BaseException, connection: AsyncPooledConnection, *, writes: bool
    ) -> BaseException:
        """The error in our words."""
        ours = _ours(error, writes)
        if self._way.is_left_by(ours):
            connection.drop()  # which is not quiet then
        self.give_back(connection)
        return _stop_behind(error) or ours

    def close(self) -> None:
        """Also when their loop is gone. What is lent is closed when it comes back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().drop()


class AsyncBorrowedConnection:
    """The same for asyncio."""

    __slots__ = ("_connection", "_pool", "_writes")

    def __init__(self, pool: AsyncPool, writes: bool) -> None:
        self._pool = pool
        self._writes = writes

    async def __aenter__(self) -> AsyncPooledConnection:
        self._connection = await self._pool.take()
        return self._connection

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self._pool.give_back(self._connection)
            return
        ours = self._pool.give_back_after(error, self._connection, writes=self._writes)
        if ours is not error:
            raise ours from error
