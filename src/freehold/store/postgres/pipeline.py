"""Statement groups on libpq itself, sent in one piece.

psycopg's cursors take longer to prepare a statement for sending than the server to execute it, and
send each statement of a pipeline by itself. The server executes those up to a Sync as one
transaction, without BEGIN and COMMIT. A client that is frozen between two of them would keep the
locks of the first, and no timeout of the server runs before the Sync. So a group is sent only when
all of it is encoded, unless it only inserts.
"""

from __future__ import annotations

import hashlib
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

from freehold.store.statements import Rows

#: Statements that a connection keeps prepared. One schema has fewer; with hundreds of schemas on
#: one connection those in use stay, and the others are not worth the server's memory.
_PREPARED_LIMIT = 400

#: SQLSTATEs: the prepared statement does not exist, or its name is taken.
_NOT_PREPARED = frozenset({b"26000", b"42P05"})

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


# -- values --------------------------------------------------------------------------------------


def encode_all(values: list[Any]) -> list[bytes | None]:
    """In PostgreSQL's text format; the statement names the types."""
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
