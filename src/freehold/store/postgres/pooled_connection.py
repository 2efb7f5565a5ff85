"""psycopg's connections as the pools keep them.

For asyncio, one reader stays registered on the socket between statements: registering and removing
it for each of them costs as much as the rest of asyncio's work for it. It is removed when psycopg's
own waiting takes over, when the server ends the connection, or when the connection is closed.
"""

from __future__ import annotations

import asyncio
import os
import select
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.postgres.pipeline import Exchange, Pipeline
from freehold.store.statements import Rows

#: A server that has not canceled a statement by then is abandoned.
_CANCEL_SECONDS = 5.0


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
