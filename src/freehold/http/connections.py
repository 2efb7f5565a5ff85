"""Limits on the connections of the API: their number, and the time until a request has arrived.

uvicorn waits for ever for the first request of a connection, and for the rest of a request that
arrives byte by byte. Each such connection costs an open file, of which the whole process, manager
included, has a limited number. So a connection without a request in progress is *idle*, whatever
it sends, and

- an idle connection is closed after `IDLE_SECONDS`, unless it still receives a response;
- when a connection arrives and the limit is reached, the one that was idle for longest is closed.
  If every connection has a request in progress, the new one is closed.

Connections are aborted, not closed: a close waits until the client has read all that was sent.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from freehold.open_files import file_limit
from freehold.rare_warning import RareWarning

#: From the connection, or from the end of a response, until the next request has its last header.
IDLE_SECONDS = 5.0


class ConnectionLimits:
    """The limits of one server, and its idle connections."""

    def __init__(self, most: int) -> None:
        self.most = most
        #: In the order in which they became idle.
        self.idle: dict[LimitedConnection, None] = {}
        self._full = RareWarning(
            "the API has %d connections, the maximum: idle ones are closed for new ones; see "
            "http.connection_count and the limit of open files"
        )

    def make_room(self) -> bool:
        """Close the connection that was idle for longest. False if there is none."""
        self._full.log(self.most)
        oldest = next(iter(self.idle), None)
        if oldest is None:
            return False
        oldest.abort()
        return True


def connections_allowed(wanted: int) -> int:
    """The stores, the manager and the handlers of requests need files too: half of all."""
    return min(wanted, max(1, file_limit() // 2))


class LimitedConnection(H11Protocol):
    """One connection, as uvicorn handles it, within the limits."""

    limits: ConnectionLimits

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._idle_timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self.limits.most and not self.limits.make_room():
            self._refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self._check_idle()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._check_idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._check_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_busy()
        if not self._refused:
            super().connection_lost(exc)

    def abort(self) -> None:
        self._set_busy()
        self.connections.discard(self)
        self.transport.abort()

    def _check_idle(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._set_busy()
        elif self._idle_timer is None and self in self.connections:
            self.limits.idle[self] = None
            self._wait_idle(self._unsent())

    def _wait_idle(self, unsent: int) -> None:
        self._idle_timer = self.loop.call_later(IDLE_SECONDS, self._end_idle, unsent)

    def _end_idle(self, unsent_before: int) -> None:
        """A client that reads a long response slowly keeps its connection."""
        unsent = self._unsent()
        if 0 < unsent < unsent_before:
            self._wait_idle(unsent)
        else:
            self.abort()

    def _unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def _set_busy(self) -> None:
        self.limits.idle.pop(self, None)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


def limited(limits: ConnectionLimits) -> type[LimitedConnection]:
    """uvicorn creates the connections, so that the limits can only be an attribute of a class."""
    return type("_Connection", (LimitedConnection,), {"limits": limits})
