"""A door between clients and PostgreSQL through which messages can get lost.

Every connection is a link. A link is whole until somebody arms it with a trap; the next message
from its client springs the trap:

    cut_at_commit           a COMMIT goes on to the server, and the link breaks at once
    answer_lost             the server does what it was asked; its answer is lost
    answer_lost_at_commit   the same, but only for a COMMIT
    request_lost            the server never hears of it

Links can also be cut, or stall: nothing passes in either direction, and nobody is told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Literal

Trap = Literal["cut_at_commit", "answer_lost", "answer_lost_at_commit", "request_lost"]
_CHUNK = 1 << 16
#: What the server says when it has done all that it was asked; the state of its transaction
#: follows as one letter.
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

    async def up(self, reader: asyncio.StreamReader, sprung: Callable[[Link, Trap], None]) -> None:
        """From the client to the server."""
        while data := await reader.read(_CHUNK):
            await self._passing.wait()
            self.name = self.name or _name_in(data)
            trap = self.trap
            if trap is not None and (b"COMMIT" in data or not trap.endswith("commit")):
                self.trap = None
                sprung(self, trap)
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
        """What was sent to the server is still delivered; the client's end just breaks."""
        self.flow()
        self._client.transport.abort()
        self._server.close()


class Proxy:
    """Listens on a port of its own; the server has a Unix socket."""

    def __init__(self, server_socket: str, sprung: Callable[[Link, Trap], None]) -> None:
        self._server_socket = server_socket
        self._sprung = sprung
        self._links: set[Link] = set()
        self._stalls = False

    async def start(self) -> int:
        """Answers the port."""
        self._listener = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    def lead_to(self, server_socket: str) -> None:
        """New connections go there; the old ones have broken with the old server."""
        self._server_socket = server_socket

    async def stop(self) -> None:
        self._listener.close()
        for link in list(self._links):
            link.cut()
        await self._listener.wait_closed()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server = await asyncio.open_unix_connection(self._server_socket)
        except OSError:
            writer.transport.abort()
            return
        link = Link(writer, server)
        if self._stalls:
            link.stall()
        self._links.add(link)
        ways = [
            asyncio.create_task(link.up(reader, self._sprung)),
            asyncio.create_task(link.down(server_reader)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # However one way ended, the other one ends too: nobody is left half open by mistake.
            self._links.discard(link)
            link.cut()
            await asyncio.gather(*ways, return_exceptions=True)

    def some(self, chance: random.Random, count: int) -> list[Link]:
        known = sorted((link for link in self._links if link.name), key=lambda link: link.name)
        return chance.sample(known, min(count, len(known)))

    def stall_all(self) -> None:
        """Packets vanish: those of new connections too."""
        self._stalls = True
        for link in self._links:
            link.stall()

    def cut_all(self) -> None:
        self._stalls = False
        for link in list(self._links):
            link.cut()


def _name_in(data: bytes) -> str:
    """As the client calls itself in its first message."""
    _, found, rest = data.partition(_NAME)
    return rest.partition(b"\x00")[0].decode() if found else ""
