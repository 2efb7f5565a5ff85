"""One registered reader on the socket of an asyncio connection.

Registering and removing a reader for each statement costs as much as the rest of asyncio's work for
it. So the reader stays registered between statements, and is removed when psycopg's own waiting
takes over, when the server ends the connection, or when the connection is closed.
"""

from __future__ import annotations

import asyncio
import os
import select

from psycopg.waiting import Ready, Wait

from freehold.errors import StoreUnavailable
from freehold.store.postgres.pipeline import Exchange
from freehold.store.statements import Rows


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
