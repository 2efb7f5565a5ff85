"""Connections that occupy a server: some send nothing, some send a request byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

#: Each byte is within any timeout for a single read.
_BYTE_SECONDS = 0.2
_HEAD = b"GET /" + b"x" * 10_000


class Flood:
    """Open connections to a port, until the end of the block."""

    def __init__(self, port: int, *, idle: int, trickling: int) -> None:
        self._sockets = [socket.socket() for _ in range(idle + trickling)]
        self._idle = idle
        self._trickling: list[socket.socket] = []
        self._port = port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._trickle)

    def __enter__(self) -> Flood:
        self._thread.start()
        # The trickling ones come first: a timeout for each read never ends them.
        with contextlib.suppress(TimeoutError):  # the server is out of files and accepts no more
            for number, each in reversed(list(enumerate(self._sockets))):
                each.settimeout(2.0)
                with contextlib.suppress(ConnectionError):
                    each.connect(("127.0.0.1", self._port))
                    if number >= self._idle:
                        self._trickling.append(each)
        return self

    def until_closed(self) -> bytes:
        """What the first connection receives until the server closes it."""
        received = b""
        self._sockets[-1].settimeout(120.0)
        with contextlib.suppress(ConnectionError):
            while data := self._sockets[-1].recv(65536):
                received += data
        return received

    def _trickle(self) -> None:
        for byte in _HEAD:
            for each in tuple(self._trickling):
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
