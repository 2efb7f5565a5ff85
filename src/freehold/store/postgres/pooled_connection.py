"""psycopg's connections as the pools keep them."""

from __future__ import annotations

import asyncio
import select
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from freehold.store.postgres.pipeline import Exchange, Pipeline
from freehold.store.postgres.socket_reader import SocketReader
from freehold.store.statements import Rows

#: A server that has not canceled a statement by then is abandoned.
_CANCEL_SECONDS = 5.0


class PooledConnection(Connection[Any]):
    """Has a pipeline for statement groups (`pipeline` is a method of psycopg's), and a poll that
    shows whether the server has closed the socket."""

    group_pipeline: Pipeline
    socket_poll: select.poll


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
