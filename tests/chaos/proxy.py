"""A proxy between clients and PostgreSQL that can lose messages.

Every connection is a link. A trap can be set on a link; the next message from its client triggers
it:

    cut_at_commit           a COMMIT is forwarded to the server, and the link breaks at once
    answer_lost             the server executes the message, and its response is lost
    answer_lost_at_commit   the same, but only for a COMMIT
    request_lost            the message never reaches the server

Links can also be cut, or stall: nothing passes in either direction, without an error.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Literal

Trap = Literal["cut_at_commit", "answer_lost", "answer_lost_at_commit", "request_lost"]
_CHUNK = 1 << 16
#: ReadyForQuery, the server's last message of a response; the transaction status follows as one
#: letter.
_DONE = b"Z\x00\x00\x00\x05"
_NAME = b"application_name\x00"


class Link:
    """One connection of a client, and the server's end of it."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._client = client
        self._server = server
        self._passing = asyncio.Event()
        self._passing.set()
        self.name = ""
        self.trap: Trap | None = None
        self._swallows = False

    async def up(self, reader: asyncio.StreamReader, on_trap: Callable[[Link, Trap], None]) -> None:
        """From the client to the server."""
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            self.name = self.name or _name_in(data)
            trap = self.trap
            if trap is not None and (b"COMMIT" in data or not trap.endswith("commit")):
                self.trap = None
                on_trap(self, trap)
                if trap == "request_lost":
                    break
                self._swallows = trap != "cut_at_commit"
            self._server.write(data)
            await self._server.drain()
            if trap == "cut_at_commit" and self.trap is None:
                break

    async def down(self, reader: asyncio.StreamReader) -> None:
        """From the server to the client."""
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            if self._swallows:
                if data[-6:-1] == _DONE:
                    break
                continue
            self._client.write(data)
            await self._client.drain()

    def stall(self) -> None:
        self._passing.clear()

    def flow(self) -> None:
        self._passing.set()

    def cut(self) -> None:
        """Messages to the server are still delivered; the client's connection breaks at once."""
        self.flow()
        self._client.transport.abort()
        self._server.close()


class Proxy:
    """Listens on a TCP port and connects to the server's Unix socket."""

    def __init__(self, server_socket: str, on_trap: Callable[[Link, Trap], None]) -> None:
        self._server_socket = server_socket
        self._on_trap = on_trap
        self._links: set[Link] = set()
        self._stalls = False

    async def start(self) -> int:
        """Returns the port."""
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    def redirect_to(self, server_socket: str) -> None:
        """New connections go to this server; the old connections broke with the old server."""
        self._server_socket = server_socket

    async def stop(self) -> None:
        self._listener.close()
        for link in list(self._links):
            link.cut()
        await self._listener.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server = await asyncio.open_unix_connection(self._server_socket)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, server)
        if self._stalls:
            link.stall()
        self._links.add(link)
        directions = [
            asyncio.create_task(link.up(reader, self._on_trap)),
            asyncio.create_task(link.down(server_reader)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # When one direction ends, the other ends too, so that no link stays half open.
            self._links.discard(link)
            link.cut()
            await asyncio.gather(*directions, return_exceptions=True)

    def some(self, chance: random.Random, count: int) -> list[Link]:
        known = sorted((link for link in self._links if link.name), key=lambda link: link.name)
        return chance.sample(known, min(count, len(known)))

    def stall_all(self) -> None:
        """All packets are lost, including those of new connections."""
        self._stalls = True
        for link in self._links:
            link.stall()

    def cut_all(self) -> None:
        self._stalls = False
        for link in list(self._links):
            link.cut()


def _name_in(data: bytes) -> str:
    """The application_name in the client's first message."""
    _, found, rest = data.partition(_NAME)
    return rest.partition(b"\x00")[0].decode() if found else ""
