"""Statement groups on libpq itself, sent in one piece, and the connections that send them.

psycopg's cursors take longer to prepare a statement for sending than the server to execute it, and
send each statement of a pipeline by itself. The server executes those up to a Sync as one
transaction, without BEGIN and COMMIT. A client that is frozen between two of them would keep the
locks of the first, and no timeout of the server runs before the Sync. So a group is sent only when
all of it is encoded, unless it only inserts.

For asyncio, one reader stays registered on the socket between statements: registering and removing
it for each of them costs as much as the rest of asyncio's work for it. It is removed when psycopg's
own waiting takes over, when the server ends the connection, or when the connection is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
import os
import select
from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.adapt import Transformer
from psycopg.errors import _WaitTimeout, error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import DiagnosticField, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.postgres.text_format import encode_all
from freehold.store.statements import Rows

#: Statements that a connection keeps prepared. One schema has fewer; with hundreds of schemas on
#: one connection those in use stay, and the others are not worth the server's memory.
_PREPARED_LIMIT = 400

#: SQLSTATEs: the prepared statement does not exist, or its name is taken.
_NOT_PREPARED = frozenset({b"26000", b"42P05"})

#: A server that has not canceled a statement by then is abandoned: see also `STUCK_SECONDS`.
_CANCEL_SECONDS = 2.0

#: The results of a statement that was prepared before: one, its own.
_ONE_RESULT: list[bytes | None] = [None]

T = TypeVar("T")

#: A statement with numbered parameters.
SqlAndValues: TypeAlias = tuple[bytes, list[Any]]
#: What `Connection.wait` and `SocketReader.run` drive.
Exchange: TypeAlias = Generator[Any, Any, list[Rows]]


class Pipeline:
    """Sends statements over one connection, and keeps the list of what is prepared there."""

    def __init__(self, connection: Connection[Any] | AsyncConnection[Any]) -> None:
        self._pgconn: PGconn = connection.pgconn
        self._prepares = connection.prepare_threshold is not None
        self._transformer = Transformer(connection)
        #: SQL -> name, the least recently used first.
        self._prepared: dict[bytes, bytes] = {}

    @property
    def is_idle(self) -> bool:
        """No statement is under way, and none has failed halfway."""
        pgconn = self._pgconn
        return (
            pgconn.transaction_status == TransactionStatus.IDLE
            and pgconn.pipeline_status == PipelineStatus.OFF
        )

    def exchange(
        self,
        statements: Iterable[SqlAndValues],
        *,
        then: SqlAndValues | None = None,
        streams: bool = False,
    ) -> Exchange:
        """The rows of each statement of one transaction.

        ``then`` follows in a transaction of its own; its result, or error, is ignored.
        ``streams``: the server may begin before the last statement is encoded and sent.
        """
        pgconn = self._pgconn
        encoded = ((sql, encode_all(values)) for sql, values in statements)
        # Unless it streams, a value that cannot be encoded raises before anything is sent.
        ready = encoded if streams else list(encoded)
        pgconn.enter_pipeline_mode()
        expected = self._deallocate_oldest() if len(self._prepared) > _PREPARED_LIMIT else []
        for sql, values in ready:
            expected = expected + self._send(sql, values)
            if streams:
                pgconn.flush()
        pgconn.pipeline_sync()
        if then is not None:
            sql, parameters = then
            expected_then = self._send(sql, encode_all(parameters))
            pgconn.pipeline_sync()
        yield from send(pgconn)
        results = yield from self._receive_until_sync(expected)
        if then is None:
            pgconn.exit_pipeline_mode()
        else:
            yield from self._receive_ignored(then, expected_then)
        return [self._rows(result) for result in results]

    def exchange_one(self, sql: bytes, values: list[Any]) -> Exchange:
        """The same for a single statement, without the overhead of a pipeline. Most groups are."""
        if self._prepares and sql not in self._prepared:
            return (yield from self.exchange([(sql, values)]))
        self._send(sql, encode_all(values))
        results = yield from execute(self._pgconn)
        if not results:
            raise psycopg.OperationalError("the server ended the connection")
        if len(results) > 1:
            raise _commit_error(results[-1])
        return [self._rows(results[0])]

    def _receive_ignored(
        self, then: SqlAndValues, expected: list[bytes | None]
    ) -> Generator[Any, Any, None]:
        """The results that count had been received: an error of this one changes nothing."""
        try:
            ignored = yield from self._receive_until_sync(expected)
            self._pgconn.exit_pipeline_mode()
            states = {result.error_field(DiagnosticField.SQLSTATE) for result in ignored}
            if not states.isdisjoint(_NOT_PREPARED):
                # A pooler routed us to another server connection: prepare nothing from now on.
                self._prepares = False
                sql, values = then
                self._send(sql, encode_all(values))
                yield from execute(self._pgconn)
        except psycopg.Error:
            pass  # the connection broke

    def _receive_until_sync(
        self, expected: list[bytes | None]
    ) -> Generator[Any, Any, list[PGresult]]:
        """The results of the statements (see `_send`), and those of a failed preparation. A
        statement stays prepared even if its transaction fails."""
        received: list[PGresult] = []
        while not received or received[-1].status != ExecStatus.PIPELINE_SYNC:
            found: list[PGresult] = yield from fetch_many(self._pgconn)
            if not found:
                raise psycopg.OperationalError("the server ended the connection")
            received += found
        results = []
        for sql, result in zip(expected, received, strict=False):
            if sql is None:
                results.append(result)
            elif result.status != ExecStatus.COMMAND_OK:
                self._prepared.pop(sql, None)
                results.append(result)
        # What is left besides the end is an error of the commit.
        return results + received[len(expected) : -1]

    # -- statements --------------------------------------------------------------------------

    def _deallocate_oldest(self) -> list[bytes | None]:
        """Returns the results to expect, as `_send` does."""
        expected: list[bytes | None] = []
        while len(self._prepared) > _PREPARED_LIMIT:
            sql = b"deallocate " + self._prepared.pop(next(iter(self._prepared)))
            self._pgconn.send_query_params(sql, None)
            expected.append(sql)
        return expected

    def _send(self, sql: bytes, values: list[bytes | None]) -> list[bytes | None]:
        """Prepares the statement first if it is new on this connection. Returns the results to
        expect: the SQL for a preparation, None for the statement itself."""
        prepared, expected = self._prepared, _ONE_RESULT
        if not self._prepares:
            self._pgconn.send_query_params(sql, values)
            return expected
        if sql not in prepared:
            prepared[sql] = _name(sql)
            self._pgconn.send_prepare(prepared[sql], sql)
            expected = [sql, None]
        elif len(prepared) > _PREPARED_LIMIT / 2:  # the least recently used stays first
            prepared[sql] = prepared.pop(sql)
        self._pgconn.send_query_prepared(prepared[sql], values)
        return expected

    def _rows(self, result: PGresult) -> Rows:
        if result.status == ExecStatus.TUPLES_OK:
            self._transformer.set_pgresult(result)
            return self._transformer.load_rows(0, result.ntuples, tuple)
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        return []


def _commit_error(result: PGresult) -> psycopg.Error:
    """The server sends the rows of a statement before it commits. If the connection ends after
    that, the outcome is unknown."""
    if result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) == b"ERROR":
        return error_from_result(result)
    return psycopg.OperationalError("the connection ended at the commit")


def _name(sql: bytes) -> bytes:
    """Derived from the SQL: behind a pooler, another client may have prepared under this name on
    the same server connection, and it must be the same statement."""
    return b"freehold_" + hashlib.sha256(sql).hexdigest()[:32].encode()


# -- connections ---------------------------------------------------------------------------------


class NoAnswer(psycopg.OperationalError):
    """A frozen server may execute the statement later: nothing more is asked of it."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__(f"the server did not answer within {seconds or 0:g} s")


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
    """The same for asyncio, with a reader that stays registered on the socket."""

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
