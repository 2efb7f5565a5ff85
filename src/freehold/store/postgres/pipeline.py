"""Statement groups on libpq itself, sent in one piece, and the connections that send them.

psycopg's cursors take longer to prepare a statement for sending than the server to execute it, and
send each statement of a pipeline by itself. Here a group is sent in one piece. The server executes
the statements of a pipeline up to a Sync as one transaction, without BEGIN and COMMIT. A client
that is frozen between two of them would keep the locks of the first, and no timeout of the server
runs before the Sync. So a group is sent only when all of it is encoded, unless it only inserts.

For asyncio, one reader stays registered on the socket between statements: registering and removing
it for each of them costs as much as the rest of asyncio's work for it. It is removed when psycopg's
own waiting takes over, when the server ends the connection, or when the connection is closed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
from collections.abc import Generator, Iterable
from datetime import datetime
from typing import Any, TypeAlias

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import DiagnosticField, ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.statements import Rows

#: Statements that a connection keeps prepared. One schema has fewer; with hundreds of schemas on
#: one connection those in use stay, and the others are not worth the server's memory.
_PREPARED_LIMIT = 400

#: SQLSTATEs: the prepared statement does not exist, or its name is taken.
_NOT_PREPARED = frozenset({b"26000", b"42P05"})

#: A server that has not canceled a statement by then is abandoned.
_CANCEL_SECONDS = 5.0

#: The results of a statement that was prepared before: one, its own.
_ONE_RESULT: list[bytes | None] = [None]

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
        encoded = ((sql, _encode_all(values)) for sql, values in statements)
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
            expected_then = self._send(sql, _encode_all(parameters))
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
        self._send(sql, _encode_all(values))
        results = yield from execute(self._pgconn)
        if not results:
            raise psycopg.OperationalError("the server ended the connection")
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
                self._send(sql, _encode_all(values))
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
        return results

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


def _name(sql: bytes) -> bytes:
    """Derived from the SQL: behind a pooler, another client may have prepared under this name on
    the same server connection, and it must be the same statement."""
    return b"freehold_" + hashlib.sha256(sql).hexdigest()[:32].encode()


# -- values --------------------------------------------------------------------------------------


def _encode_all(values: list[Any]) -> list[bytes | None]:
    # Most values are texts and integers: a call for each of them would double the time.
    return [
        value.encode()
        if type(value) is str and "\0" not in value
        else b"%d" % value
        if type(value) is int
        else _encode(value)
        for value in values
    ]


def _encode(value: Any) -> bytes | None:
    """In PostgreSQL's text format; the statement names the type."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int | float):
        return str(value).encode()
    if isinstance(value, datetime):
        return value.isoformat().encode()
    if isinstance(value, list):
        value = "{" + ",".join(map(_element, value)) + "}"
    if not isinstance(value, str):
        raise TypeError(f"no value for PostgreSQL: {value!r}")
    if "\0" in value:  # libpq would cut the text there
        raise psycopg.DataError("PostgreSQL's texts cannot contain the character \\0")
    return value.encode()


def _element(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# -- connections ---------------------------------------------------------------------------------


class PooledConnection(Connection[Any]):
    """Has a pipeline for statement groups (`pipeline` is a method of psycopg's), and a poll that
    shows whether the server has closed the socket."""

    group_pipeline: Pipeline
    socket_poll: select.poll


class SocketReader:
    """Drives exchanges on a duplicate of the connection's file descriptor.

    libpq closes its own descriptor when the server is gone, or when the connection is garbage. An
    event loop still registered on that number would miss the events of the next file that gets it.
    If a forked child has the socket open too, the loop would even report its end for ever, and the
    reader could no longer be removed.
    """

    _is_reading = False
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
        self._ready: asyncio.Future[Ready] | None = None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        self.stop_reading()
        if not self._is_closed:
            self._is_closed = True
            os.close(self._socket)

    def stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)

    def _start_reading(self) -> None:
        self._is_reading = True
        self._loop.add_reader(self._socket, self._on_readable)

    async def run(self, exchange: Exchange) -> list[Rows]:
        if not self._is_reading:
            self._start_reading()
        try:
            wanted = next(exchange)
            while True:
                self._ready = self._loop.create_future()
                if wanted & Wait.W:
                    self._loop.add_writer(self._socket, self._wake, Ready.W)
                try:
                    state = await self._ready
                finally:
                    self._ready = None
                    if wanted & Wait.W:
                        self._loop.remove_writer(self._socket)
                wanted = exchange.send(state)
                # More is to come. If the server has ended the connection after the part that was
                # read, uvloop has reported both at once and reads no more: register again.
                self.stop_reading()
                self._start_reading()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _on_readable(self) -> None:
        # Input that no exchange waits for, and that was not just read: the server has ended the
        # connection.
        if not self._wake(Ready.R) and self._poll.poll(0):
            self.stop_reading()

    def _wake(self, state: Ready) -> bool:
        """Whether an exchange waits; it continues."""
        if self._ready is None:
            return False
        if not self._ready.done():
            self._ready.set_result(state)
        return True


class AsyncPooledConnection(AsyncConnection[Any]):
    """The same for asyncio, with a reader that stays registered on the socket."""

    group_pipeline: Pipeline
    socket_poll: select.poll
    _socket_reader: SocketReader | None = None

    async def run_exchange(self, exchange: Exchange) -> list[Rows]:
        """Like `wait`, which also wakes up every tenth of a second to check for an interrupt: an
        event loop needs no such check."""
        if self._socket_reader is None:
            self._socket_reader = SocketReader(self.pgconn.socket)
        try:
            return await self._socket_reader.run(exchange)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._cancel_statement(self._socket_reader, exchange)
            raise

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """psycopg's own, which registers a reader of its own each time."""
        if self._socket_reader is not None:
            self._socket_reader.stop_reading()
        return await super().wait(*args, **kwargs)

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
