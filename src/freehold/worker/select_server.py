"""A server for small requests on one thread, which clients can neither block nor exhaust.

A connection has `REQUEST_SECONDS` for its whole request and response, however slowly it sends.
There are at most `CONNECTIONS` of them; a further one replaces the oldest. So a client that sends
its request at once is served, also beside thousands of connections that send nothing.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable

from freehold.clock import monotonic
from freehold.rare_warning import RareWarning

REQUEST_SECONDS = 5.0
CONNECTIONS = 32
_BACKLOG = 256
_HEAD_BYTES = 16 * 1024
_READ_BYTES = 4096
#: Where a connection cannot be accepted, for lack of open files, the listener stays readable.
_ACCEPT_ERROR_SECONDS = 1.0


class SelectServer:
    """Calls ``respond`` with the head of each request, on its own thread. One response per
    connection."""

    def __init__(self, host: str, port: int, respond: Callable[[bytes], bytes]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._respond = respond
        self._wakeup, self._waker = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        #: The oldest first.
        self._connections: dict[socket.socket, _Connection] = {}
        self._accept_at = 0.0
        self._accept_error = RareWarning("metrics: cannot accept connections, trying again: %s")
        self._failed = RareWarning("metrics: a request failed: %r")
        self._thread = threading.Thread(target=self._run, name="freehold-metrics", daemon=True)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._waker.close()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.ExitStack() as stack:
            for each in (self._selector, self._listener, self._wakeup):
                stack.callback(each.close)
            while self._run_once():
                pass
            for connection in tuple(self._connections.values()):
                self._end(connection)

    def _run_once(self) -> bool:
        """Returns False when the server is closed."""
        for key, _ in self._selector.select(self._timeout()):
            if key.fileobj is self._wakeup:
                return False
            if key.fileobj is self._listener:
                self._accept()
            elif (connection := self._connections.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                self._advance(connection)
        now = monotonic()
        for connection in tuple(self._connections.values()):
            if connection.ends_at > now:
                break
            self._end(connection)
        if self._accept_at and now >= self._accept_at:
            self._accept_at = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ)
        return True

    def _timeout(self) -> float | None:
        """The seconds until something is due without an event; None if nothing is."""
        times = [each.ends_at for each in self._connections.values()][:1]
        if self._accept_at:
            times.append(self._accept_at)
        return max(0.0, min(times) - monotonic()) if times else None

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            self._accept_error.log(error)
            self._selector.unregister(self._listener)
            self._accept_at = monotonic() + _ACCEPT_ERROR_SECONDS
            return
        if len(self._connections) >= CONNECTIONS:
            self._end(next(iter(self._connections.values())))
        accepted.setblocking(False)
        self._connections[accepted] = _Connection(accepted, monotonic() + REQUEST_SECONDS)
        self._selector.register(accepted, selectors.EVENT_READ)

    def _advance(self, connection: _Connection) -> None:
        try:
            if connection.response is None and connection.has_read_head():
                connection.response = memoryview(self._respond(bytes(connection.head)))
                self._selector.modify(connection.socket, selectors.EVENT_WRITE)
            if connection.response is not None and connection.has_sent_response():
                self._end(connection)
        except BlockingIOError:
            return
        except OSError:  # the client has closed the connection
            self._end(connection)
        except Exception as error:
            self._failed.log(error)
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        del self._connections[connection.socket]
        self._selector.unregister(connection.socket)
        connection.socket.close()


class _Connection:
    """One client: a head that is being read, then a response that is being sent."""

    def __init__(self, accepted: socket.socket, ends_at: float) -> None:
        self.socket = accepted
        self.ends_at = ends_at
        self.head = bytearray()
        self.response: memoryview | None = None

    def has_read_head(self) -> bool:
        data = self.socket.recv(_READ_BYTES)
        self.head += data
        if not data or len(self.head) > _HEAD_BYTES:
            raise ConnectionResetError
        return b"\r\n\r\n" in self.head or b"\n\n" in self.head

    def has_sent_response(self) -> bool:
        assert self.response is not None
        self.response = self.response[self.socket.send(self.response) :]
        return not self.response
