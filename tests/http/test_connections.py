"""Limits on connections: a client that sends nothing, or too slowly, cannot occupy the server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

import httpx
import pytest
import uvloop

from freehold.http import connections
from tests.http.api_client import TIMEOUT_SECONDS, ApiClient, served, settings_with

REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
STREAM = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
SOON_SECONDS = 0.1
NEVER_SECONDS = 600.0
MOST = 4

LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop] | None


@pytest.fixture(params=[None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    factory: LoopFactory = request.param
    return factory


@pytest.fixture
def address(
    sqlite_client: ApiClient, monkeypatch: pytest.MonkeyPatch, loop_factory: LoopFactory
) -> Iterator[str]:
    """A server that closes idle connections soon."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", SOON_SECONDS)
    with served(sqlite_client.app, settings_with(sqlite_client.folder, port=0), loop_factory) as at:
        yield at


@pytest.fixture
def small_address(
    sqlite_client: ApiClient, monkeypatch: pytest.MonkeyPatch, loop_factory: LoopFactory
) -> Iterator[str]:
    """A server for few connections, which closes idle ones only to make room."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", NEVER_SECONDS)
    settings = settings_with(sqlite_client.folder, port=0, connection_count=MOST)
    with served(sqlite_client.app, settings, loop_factory) as at:
        yield at


def connect(address: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(TIMEOUT_SECONDS)
    client.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    return client


def request_livez(client: socket.socket) -> None:
    client.sendall(REQUEST)
    received = b""
    while not received.endswith(b'{"status":"alive"}'):
        data = client.recv(65536)
        assert data, received
        received += data


def until_closed(client: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while data := client.recv(65536):
            received += data
    return received


def trickle_until_closed(client: socket.socket) -> None:
    """Sends a head that never ends, each byte sooner than a connection would be idle."""
    closed = threading.Event()

    def trickle() -> None:
        while not closed.wait(SOON_SECONDS / 5):
            with contextlib.suppress(OSError):
                client.send(b"x")

    client.sendall(b"GET /livez HTTP/1.1\r\nX-Slow: ")
    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        assert until_closed(client) == b""
    finally:
        closed.set()
        thread.join()


def test_a_connection_without_a_request_is_closed(address: str) -> None:
    with connect(address) as client:
        assert until_closed(client) == b""


def test_a_request_that_arrives_byte_by_byte_is_cut_off(address: str) -> None:
    with connect(address) as client:
        trickle_until_closed(client)


def test_the_second_request_of_a_connection_has_the_same_deadline(address: str) -> None:
    with connect(address) as client:
        request_livez(client)
        trickle_until_closed(client)


def test_a_body_that_arrives_after_its_response_does_not_keep_the_connection(address: str) -> None:
    with connect(address) as client:
        client.sendall(REQUEST[:-2] + b"Content-Length: 1000000\r\n\r\nx")
        assert until_closed(client).startswith(b"HTTP/1.1 200 ")


def test_a_request_in_progress_is_not_idle(address: str) -> None:
    with connect(address) as stream, connect(address) as silent:
        stream.sendall(STREAM)
        assert stream.recv(65536).startswith(b"HTTP/1.1 200 ")
        until_closed(silent)
        with connect(address) as later:
            until_closed(later)
        stream.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            while stream.recv(65536):
                pass
            raise AssertionError("the stream has ended")


def test_a_response_that_the_client_does_not_read_is_given_up(
    sqlite_client: ApiClient, address: str
) -> None:
    """More than the system buffers on the way."""
    for _ in range(6):
        sqlite_client.add(args={"name": "x" * 900_000})
    with connect(address) as client:
        client.sendall(b"GET /api/jobs?args=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = client.recv(1000)
        assert head.startswith(b"HTTP/1.1 200 ")
        for _ in range(3):  # each one takes as long as an idle connection may stay
            with connect(address) as silent:
                until_closed(silent)
        assert len(until_closed(client)) < 6 * 900_000


def test_beyond_the_limit_the_longest_idle_connection_makes_room(small_address: str) -> None:
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(MOST):
            clients.append(stack.enter_context(connect(small_address)))
            request_livez(clients[-1])
        assert httpx.get(f"{small_address}/livez").status_code == 200
        assert until_closed(clients[0]) == b""
        for client in clients[1:]:
            request_livez(client)


def test_if_all_connections_have_requests_the_next_one_is_refused(small_address: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            client = stack.enter_context(connect(small_address))
            client.sendall(STREAM)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        with connect(small_address) as refused:
            assert until_closed(refused) == b""
