"""Batches on libpq itself: one piece to the server, and its answers.

psycopg's cursors take longer to get ready for a statement than the server to execute it, and send
each statement of a pipeline by itself. Here a batch is sent in one piece. Statements of a pipeline
that are not followed by a Sync are one transaction to the server, without BEGIN and COMMIT. A
process that was frozen between two of them would keep the locks of the first, and nobody could
tell the server to let go of it: no timeout runs before the Sync.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
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

#: A server that has not stopped by then is left.
_TAKE_BACK_SECONDS = 5.0

#: SQLSTATEs: no such prepared statement, or somebody has prepared it there.
_FORGOTTEN = (b"26000", b"42P05")

#: What is answered of a statement that was prepared before.
_STATEMENT: list[bytes | None] = [None]

#: What `Connection.wait` drives, blocking or not.
Exchange: TypeAlias = Generator[Any, Any, list[Rows]]


class PreparedStatement(msgspec.Struct, frozen=True):
    """SQL with numbered parameters, and how to come by their values."""

    sql: bytes
    values: Callable[[], list[Any]]


class Pipeline:
    """Talks over one connection, and knows what is prepared there."""

    def __init__(self, connection: Connection[Any] | AsyncConnection[Any]) -> None:
        self._pgconn: PGconn = connection.pgconn
        self._prepares = connection.prepare_threshold is not None
        self._reader = Transformer(connection)
        #: Under which names.
        self._names: dict[bytes, bytes] = {}

    @property
    def is_quiet(self) -> bool:
        """Nothing is under way, nor left over from something that went wrong."""
        pgconn = self._pgconn
        return (
            pgconn.transaction_status == TransactionStatus.IDLE
            and pgconn.pipeline_status == PipelineStatus.OFF
        )

    def talk(
        self,
        batch: Sequence[PreparedStatement],
        *,
        then: PreparedStatement | None = None,
        flows: bool = False,
    ) -> Exchange:
        """The rows of each statement of one transaction.

        ``then``: what is said when that is over, in a transaction of its own; its answer is of no
        interest, whatever it is. ``flows``: the server may begin before all of it is there.
        """
        results = yield from self._pipelined(batch, then, flows)
        _check(results)
        return [self._rows(result) for result in results]

    def say(self, sql: bytes, values: list[Any]) -> Exchange:
        """The same for one statement by itself: what most batches are, kept short."""
        if self._prepares and sql not in self._names:
            return (yield from self.talk([PreparedStatement(sql, lambda: values)]))
        self._send(sql, _texts(values))
        results = yield from execute(self._pgconn)
        if not results:
            raise psycopg.OperationalError("the server ended the connection")
        _check(results)
        return [self._rows(results[0])]

    def _pipelined(
        self, batch: Sequence[PreparedStatement], then: PreparedStatement | None, flows: bool
    ) -> Generator[Any, Any, list[PGresult]]:
        pgconn = self._pgconn
        words: Iterable[tuple[bytes, list[bytes | None]]]
        words = ((said.sql, _texts(said.values())) for said in batch)
        if not flows:  # what cannot be said costs nobody anything
            words = list(words)
        pgconn.enter_pipeline_mode()
        sent = self._forget_oldest()
        for sql, texts in words:
            sent += self._send(sql, texts)
            if flows:
                pgconn.flush()
        pgconn.pipeline_sync()
        if then is not None:
            after = self._send(then.sql, _texts(then.values()))
            pgconn.pipeline_sync()
        yield from send(pgconn)
        results = yield from self._until_sync(sent)
        if then is not None:
            try:
                answers = yield from self._until_sync(after)
                pgconn.exit_pipeline_mode()
                if any(map(_is_forgotten, answers)):
                    yield from self._repeat(then)
            except psycopg.Error:
                pass  # the connection broke, but what counts had been answered
            return results
        pgconn.exit_pipeline_mode()
        return results

    def _repeat(self, said: PreparedStatement) -> Generator[Any, Any, None]:
        """Behind a pooler, where what was prepared is not known: as it is, from now on."""
        self._prepares = False
        self._send(said.sql, _texts(said.values()))
        yield from execute(self._pgconn)

    def _until_sync(self, sent: list[bytes | None]) -> Generator[Any, Any, list[PGresult]]:
        """The answers to what was ``sent``: see `_send`. What is prepared stays so, whatever
        becomes of the transaction."""
        results: list[PGresult] = []
        while not results or results[-1].status != ExecStatus.PIPELINE_SYNC:
            found: list[PGresult] = yield from fetch_many(self._pgconn)
            if not found:
                raise psycopg.OperationalError("the server ended the connection")
            results += found
        answers = []
        for sql, result in zip(sent, results, strict=False):
            if sql is None:
                answers.append(result)
            elif result.status != ExecStatus.COMMAND_OK:
                self._names.pop(sql, None)
                answers.append(result)
        return answers

    # -- statements --------------------------------------------------------------------------

    def _forget_oldest(self) -> list[bytes | None]:
        """If there are too many. Answers what there will be an answer to, by its SQL."""
        sent: list[bytes | None] = []
        while len(self._names) > _PREPARED_LIMIT:
            sql = b"deallocate " + self._names.pop(next(iter(self._names)))
            self._pgconn.send_query_params(sql, None)
            sent.append(sql)
        return sent

    def _send(self, sql: bytes, texts: list[bytes | None]) -> list[bytes | None]:
        """Answers what there will be an answer to: preparing it, if it is new here, by its SQL; and
        the statement."""
        known, sent = self._names, _STATEMENT
        if not self._prepares:
            self._pgconn.send_query_params(sql, texts)
            return sent
        if sql not in known:
            known[sql] = _name(sql)
            self._pgconn.send_prepare(known[sql], sql)
            sent = [sql, None]
        elif len(known) > _PREPARED_LIMIT / 2:  # what was not needed for longest goes first
            known[sql] = known.pop(sql)
        self._pgconn.send_query_prepared(known[sql], texts)
        return sent

    def _rows(self, result: PGresult) -> Rows:
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._reader.set_pgresult(result)
        return self._reader.load_rows(0, result.ntuples, tuple)


class PooledConnection(Connection[Any]):
    """A connection with its wire, and a look at whether the server has closed it."""

    wire: Pipeline
    looker: select.poll


class AsyncPooledConnection(AsyncConnection[Any]):
    """The same for asyncio, with an ear that stays on its socket."""

    wire: Pipeline
    looker: select.poll
    _ear: SocketReader | None = None

    async def ask(self, talk: Exchange) -> list[Rows]:
        """As `wait`, which also looks every tenth of a second whether somebody wants to interrupt:
        in a loop that is known without looking."""
        if self._ear is None:
            self._ear = SocketReader(self.pgconn.socket)
        try:
            return await self._ear.hear(talk)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._take_back(self._ear, talk)
            raise

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """psycopg's own way, which tells the loop anew each time."""
        if self._ear is not None:
            self._ear.shut()
        return await super().wait(*args, **kwargs)

    async def _take_back(self, ear: SocketReader, talk: Exchange) -> None:
        """The server is still at it, and its answer must not be taken for that to the next."""
        ear.shut()  # it may have heard something that nobody waited for any more
        try:
            async with asyncio.timeout(_TAKE_BACK_SECONDS):
                await self.cancel_safe(timeout=_TAKE_BACK_SECONDS)
                await ear.hear(talk)
        except TimeoutError:
            self.drop()
        except psycopg.Error:
            pass  # as expected: it was cancelled, or broke

    def drop(self) -> None:
        """Close it at once, and wait for nobody."""
        if self._ear is not None:
            self._ear.end()
        self.pgconn.finish()


class SocketReader:
    """What the loop knows of a socket. To tell it anew with each statement takes as long as all the
    rest that asyncio does for one.

    It holds the socket by a number of its own. libpq closes its number when it finds that the
    server is gone, or when nobody holds the connection any more. A loop that still listened there
    would never hear whoever is given that number next; or, where a forked child holds the socket
    too, would hear of its end for ever, and could no longer be told not to listen.
    """

    _is_open = False
    #: As long as it has no number of its own.
    _has_ended = True

    def __init__(self, socket: int) -> None:
        try:
            self._socket = os.dup(socket)
        except OSError as error:  # before anything was sent
            raise StoreUnavailable(f"no more files can be opened ({error})") from error
        self._has_ended = False
        self._looker = select.poll()
        self._looker.register(self._socket, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Ready] | None = None

    def __del__(self) -> None:
        self.end()

    def end(self) -> None:
        self.shut()
        if not self._has_ended:
            self._has_ended = True
            os.close(self._socket)

    def shut(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)

    def _open(self) -> None:
        self._is_open = True
        self._loop.add_reader(self._socket, self._on_input)

    async def hear(self, talk: Exchange) -> list[Rows]:
        if not self._is_open:
            self._open()
        try:
            wanted = next(talk)
            while True:
                self._ready = self._loop.create_future()
                if wanted & Wait.W:
                    self._loop.add_writer(self._socket, self._on, Ready.W)
                try:
                    state = await self._ready
                finally:
                    self._ready = None
                    if wanted & Wait.W:
                        self._loop.remove_writer(self._socket)
                wanted = talk.send(state)
                # There is more to come. Where the server has ended the connection behind what was
                # read, uvloop has told so with it, and no longer listens.
                self.shut()
                self._open()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _on_input(self) -> None:
        # Nobody waits for it, and it was not read just now: the server has ended the connection.
        if not self._on(Ready.R) and self._looker.poll(0):
            self.shut()

    def _on(self, state: Ready) -> bool:
        """Whether somebody waits, and may go on."""
        if self._ready is None:
            return False
        if not self._ready.done():
            self._ready.set_result(state)
        return True


def _name(sql: bytes) -> bytes:
    """The same for everybody: a pooler may lead us to a connection on which somebody else has
    prepared under this name, and it must never be another statement."""
    return b"freehold_" + hashlib.sha256(sql).hexdigest()[:32].encode()


def _is_forgotten(result: PGresult) -> bool:
    return result.error_field(DiagnosticField.SQLSTATE) in _FORGOTTEN


def _check(results: list[PGresult]) -> None:
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)


# -- values --------------------------------------------------------------------------------------


def _texts(values: list[Any]) -> list[bytes | None]:
    # Most of them are texts and numbers: so many calls take as long as all the rest of it.
    return [
        value.encode()
        if type(value) is str and "\0" not in value
        else b"%d" % value
        if type(value) is int
        else _text(value)
        for value in values
    ]


def _text(value: Any) -> bytes | None:
    """As PostgreSQL reads it; of which type it is, the statement says."""
    if value is None:
        return None
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int | float):
        return str(value).encode()
    if isinstance(value, datetime):
        return value.isoformat().encode()
    if isinstance(value, list):
        return _whole("{" + ",".join(_elements(value)) + "}")
    raise TypeError(f"no value for PostgreSQL: {value!r}")


def _whole(text: str) -> bytes:
    """A zero would end it early."""
    if "\0" in text:
        raise psycopg.DataError("PostgreSQL's texts cannot contain the character \\0")
    return text.encode()


def _elements(texts: list[str]) -> Iterator[str]:
    for text in texts:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        yield f'"{escaped}"'
