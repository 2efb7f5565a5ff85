"""A pooler for one client, which stays connected while the server behind it changes.

It refuses startup parameters and has process ids of its own, as PgBouncer does in transaction mode.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict

#: No process of a machine has such a number.
_PROCESS = 2**31 - 2
_TIMEOUT_SECONDS = 120.0


class ChangingPooler:
    """Listens on a TCP port of this machine."""

    def __init__(self, server_url: str) -> None:
        self._path = _socket_of(server_url)
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = (
            f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable"
        )
        self._startup = b""
        self._server: socket.socket | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(_TIMEOUT_SECONDS)
        if self._server is not None:
            self._server.close()

    def change_to(self, server_url: str) -> None:
        """The next transaction goes to this server. None may be open."""
        self._path = _socket_of(server_url)
        old, self._server = self._server, None
        if old is not None:
            old.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client:
                self._serve_client(client)

    def _serve_client(self, client: socket.socket) -> None:
        size = struct.unpack("!i", _exactly(client, 4))[0]
        startup = _exactly(client, size - 4)
        if b"options\0" in startup:
            fields = b"SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
            client.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)
            return
        self._startup = struct.pack("!i", size) + startup
        self._server, greeting = self._connect()
        client.sendall(greeting)
        try:
            while True:
                self._exchange(client)
        except (EOFError, OSError):
            return

    def _connect(self) -> tuple[socket.socket, bytes]:
        """With what the server sends until it is ready; its process has another number."""
        server = socket.socket(socket.AF_UNIX)
        server.settimeout(_TIMEOUT_SECONDS)
        server.connect(self._path)
        server.sendall(self._startup)
        greeting = b""
        while True:
            kind, body = _message(server)
            if kind == b"K":
                body = struct.pack("!i", _PROCESS) + body[4:]
            greeting += kind + struct.pack("!i", len(body) + 4) + body
            if kind == b"Z":
                return server, greeting

    def _exchange(self, client: socket.socket) -> None:
        """One transaction: messages of the client up to each Sync, and the answers to them."""
        sent = b""
        while not sent.endswith(b"S\0\0\0\4"):
            kind, body = _message(client)
            if kind == b"X":
                raise EOFError
            sent += kind + struct.pack("!i", len(body) + 4) + body
        if self._server is None:
            self._server, _ = self._connect()
        self._server.sendall(sent)
        answer = b""
        while True:
            kind, body = _message(self._server)
            answer += kind + struct.pack("!i", len(body) + 4) + body
            if kind == b"Z":
                break
        client.sendall(answer)


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], _exactly(source, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = source.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _socket_of(url: str) -> str:
    parts = conninfo_to_dict(url)
    return f"{parts['host']}/.s.PGSQL.{parts['port']}"
