"""Connections that occupy a server: some send nothing, some send a request byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

#: Each byte is within any timeout for a single read.
_BYTE_SECONDS = 0.2
_HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 10_000


class Flood:
    """Open connections to a port, until the end of the block."""

    def __init__(self, port: int, *, idle: int, trickling: int) -> None:
        self._sockets = [socket.socket() for _ in range(idle + trickling)]
        self._trickling = self._sockets[idle:]
        self._port = port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._trickle)

    def __enter__(self) -> Flood:
        for each in self._sockets:
            each.settimeout(1.0)
            # A server that is out of files accepts no more. It resets those beyond its limit.
            with contextlib.suppress(OSError):
                each.connect(("127.0.0.1", self._port))
        self._thread.start()
        return self

    def until_closed(self) -> bytes:
        """What the first connection receives until the server closes it."""
        received = b""
        self._sockets[0].settimeout(120.0)
        with contextlib.suppress(ConnectionError):
            while data := self._sockets[0].recv(65536):
                received += data
        return received

    def _trickle(self) -> None:
        for byte in _HEAD:
            for each in self._trickling:
                with contextlib.suppress(OSError):
                    each.send(bytes([byte]))
            if self._ended.wait(_BYTE_SECONDS):
                return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        for each in self._sockets:
            each.close()
