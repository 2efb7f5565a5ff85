"""Connections that are kept open, for threads; `async_pool` has those of event loops.

Smaller than a general pool on purpose: no threads of its own, safe after a fork, and an unreachable
server raises at once instead of waiting. A connection that broke is closed; one that the server
has closed meanwhile is noticed before it is used.
"""

from __future__ import annotations

import contextlib
import select
import threading
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import _WaitTimeout
from psycopg.pq import ConnStatus

from freehold.errors import StoreReadOnly
from freehold.fork_safety import ForkAware, notice_forks
from freehold.store.postgres.conninfo import conninfo, unreachable, with_last
from freehold.store.postgres.errors import NoAnswer, StatementNotPrepared, translation
from freehold.store.postgres.pipeline import Exchange, Pipeline
from freehold.store.statements import Rows

if TYPE_CHECKING:
    from freehold.store.postgres.async_pool import AsyncPooledConnection

T = TypeVar("T")

_OPTIONS = "-c plan_cache_mode=force_generic_plan -c client_connection_check_interval=5000"


class PooledConnection(Connection[Any]):
    """With a pipeline for statement groups; `pipeline` is a method of psycopg's."""

    group_pipeline: Pipeline
    socket_poll: select.poll  # shows whether the server has closed the socket
    #: How long the server may take for a statement; None is without a limit.
    answer_seconds: float | None = None
    #: Schemas whose sequences belong to the server's timeline: see `timeline`.
    checked_schemas: set[str]
    host_and_port: tuple[str, int]

    def run_exchange(self, exchange: Exchange, seconds: float | None = None) -> list[Rows]:
        """Raises NoAnswer after so many seconds."""
        try:
            return super().wait(exchange, timeout=seconds)
        except _WaitTimeout:
            raise NoAnswer(seconds) from None

    def wait(
        self, gen: Generator[Any, Any, T], interval: float = 0.1, timeout: float | None = None
    ) -> T:
        """psycopg's own, for its cursors, with the limit of the connection."""
        if timeout is not None or self.answer_seconds is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_seconds)
        except _WaitTimeout:
            self.pgconn.finish()  # psycopg would send a rollback and wait for that
            raise NoAnswer(self.answer_seconds) from None


@contextlib.contextmanager
def answering_within(
    connection: PooledConnection | AsyncPooledConnection, seconds: float | None
) -> Iterator[None]:
    """Another limit for a while, which psycopg's cursors take from their connection."""
    usual, connection.answer_seconds = connection.answer_seconds, seconds
    try:
        yield
    finally:
        connection.answer_seconds = usual


class ConnectionRecipe:
    """How to connect. Internal connections keep generic plans: planning a claim takes four times as
    long as the claim itself, and the tests read the generic plans. Their server processes check for
    a closed connection while they wait for a lock: a statement that was given up would wait on, and
    the next tries with it, until the server has no more connections.

    A pooler in transaction mode may refuse options, and a statement prepared on one server
    connection does not exist on the next: after such an error both are left out.
    """

    def __init__(self, url: str, answer_seconds: float | None = None, *, internal: bool) -> None:
        """``internal``: for Freehold's own statements. Handlers get plain connections."""
        plain = conninfo(url)
        if internal:  # `Pipeline` writes UTF-8, whatever the encoding of the database is
            plain = make_conninfo(plain, client_encoding="utf8")
        options = conninfo_to_dict(plain).get("options") or ""
        self.info = make_conninfo(plain, options=f"{options} {_OPTIONS}") if internal else plain
        self._plain = plain
        self._prepares = True
        self._answer_seconds = answer_seconds

    def drop_options(self, info: str, error: psycopg.Error) -> bool:
        """Whether connecting without options is worth a try. Several connections may fail at once,
        and each of them gets True."""
        refused = "startup parameter" in str(error) or "client_connection_check" in str(error)
        if info == self._plain or not refused:
            return False
        self.info = self._plain
        self._prepares = False
        return True

    def set_up(self, connection: PooledConnection | AsyncPooledConnection) -> None:
        """Called for every new connection."""
        if not self._prepares:
            connection.prepare_threshold = None
        connection.group_pipeline = Pipeline(connection)
        connection.socket_poll = select.poll()  # unlike select(), for any number of open files
        connection.socket_poll.register(connection.fileno(), select.POLLIN)
        connection.answer_seconds = self._answer_seconds
        connection.checked_schemas = set()
        connection.host_and_port = connection.info.host, connection.info.port

    def is_usable(self, connection: PooledConnection | AsyncPooledConnection) -> bool:
        """An idle connection with something to read was closed by the server."""
        if connection.pgconn.status == ConnStatus.BAD or connection.socket_poll.poll(0):
            return False
        return self._prepares or connection.prepare_threshold is None

    def try_last(self, host_and_port: tuple[str, int]) -> None:
        """Of a list of hosts: each try of a frozen one takes as long as a host may take."""
        self.info = with_last(self.info, *host_and_port)
        self._plain = with_last(self._plain, *host_and_port)

    def closes_after(self, error: BaseException) -> bool:
        """Whether the connection that met this error is of no more use."""
        if isinstance(error, StatementNotPrepared):
            self._prepares = False
        # After a fail-over a new connection may reach the new primary.
        return isinstance(error, StatementNotPrepared | StoreReadOnly)


def store_error(error: BaseException, writes: bool) -> BaseException:
    """psycopg's errors translated, all others as they are."""
    return translation(error, writes=writes) if isinstance(error, psycopg.Error) else error


class Pool(ForkAware):
    """For threads. Acquiring an idle connection takes no lock: every statement passes here, and
    `list.pop` returns each connection once."""

    def __init__(
        self, url: str, size: int, *, answer_seconds: float | None = None, internal: bool = True
    ) -> None:
        """``answer_seconds``: see `SessionOptions`; None is without a limit."""
        self._url = url
        self._recipe = ConnectionRecipe(url, answer_seconds, internal=internal)
        self._size = size
        self.after_fork_in_child()
        notice_forks(self)

    def after_fork_in_child(self) -> None:
        """Connections belong to the parent, and so do the counts and locks of its threads. A new
        pool begins the same way."""
        self._idle: list[PooledConnection] = []
        #: Connections that are idle, borrowed, or being opened; and threads that wait for one.
        self._open = self._waiting = 0
        # Acquired directly, not through the condition: Ctrl-C within the condition's own code would
        # leave it locked.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def connection(self, *, writes: bool) -> BorrowedConnection:
        return BorrowedConnection(self, writes)

    def acquire(self) -> PooledConnection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._may_connect():
                    return self._connect()
                continue
            try:
                if self._recipe.is_usable(connection):
                    return connection
            except BaseException:  # Ctrl-C: it will not be released
                self._discard(connection)
                raise
            self._discard(connection)

    def _may_connect(self) -> bool:
        """Counts one more, if the size allows; otherwise waits until one is idle or closed."""
        with self._lock:
            # Counted before `_idle` is read again: `release` appends first, then reads the count.
            self._waiting += 1
            try:
                while not self._idle:
                    if self._open < self._size:
                        self._open += 1
                        return True
                    self._changed.wait()
                return False
            finally:
                self._waiting -= 1

    def _connect(self) -> PooledConnection:
        try:
            while True:
                info = self._recipe.info
                try:
                    connection = PooledConnection.connect(info, autocommit=True)
                except psycopg.Error as error:
                    if not self._recipe.drop_options(info, error):
                        raise unreachable(self._url, error) from None
                else:
                    self._recipe.set_up(connection)
                    return connection
        except BaseException:
            self._uncount()
            raise

    def release(self, connection: PooledConnection) -> None:
        if not connection.group_pipeline.is_idle:
            self._discard(connection)
            return
        self._idle.append(connection)
        if self._waiting:
            with self._lock:
                self._changed.notify()

    def release_after(
        self, error: BaseException, connection: PooledConnection, *, writes: bool
    ) -> BaseException:
        """Returns the error as Freehold's."""
        translated_error = store_error(error, writes)
        if isinstance(error, NoAnswer):
            self._recipe.try_last(connection.host_and_port)
        if self._recipe.closes_after(translated_error):
            self._discard(connection)
        else:
            self.release(connection)
        return translated_error

    def _discard(self, connection: PooledConnection) -> None:
        try:
            connection.close()
        finally:
            self._uncount()

    def _uncount(self) -> None:
        with self._lock:
            self._open -= 1
            self._changed.notify()

    def close(self) -> None:
        while self._idle:
            self._discard(self._idle.pop())


class BorrowedConnection:
    """Acquires a connection of the pool and releases it. Meanwhile its responses have no time
    limit: the sessions do not use it."""

    __slots__ = ("_connection", "_limit", "_pool", "_writes")

    def __init__(self, pool: Pool, writes: bool) -> None:
        self._pool = pool
        self._writes = writes

    def __enter__(self) -> PooledConnection:
        self._connection = self._pool.acquire()
        # A migration takes as long as it takes.
        self._limit, self._connection.answer_seconds = self._connection.answer_seconds, None
        return self._connection

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._connection.answer_seconds = self._limit
        if error is None:
            self._pool.release(self._connection)
            return
        translated_error = self._pool.release_after(error, self._connection, writes=self._writes)
        if translated_error is not error:
            raise translated_error from error
