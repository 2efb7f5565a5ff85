"""Hostile requests over a socket: no internal error, and the service works afterwards."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from freehold.http.asgi import TABLE
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import State
from tests.http.api_client import (
    TIMEOUT_SECONDS,
    TOKENS,
    ApiClient,
    bearer,
    served,
    settings_with,
)
from tests.http.fuzzed_requests import FuzzedRequest, fuzzed_request
from tests.sizes import sized

REQUESTS = sized("FUZZED_REQUESTS", short=800, long=20_000)
SEED = int(os.environ.get("FREEHOLD_TEST_FUZZ_SEED", "20261118"))
#: The response to `Expect: 100-continue`, which precedes the real one.
CONTINUE = re.compile(rb"^HTTP/1\.1 100 [^\r\n]*\r\n\r\n")


def test_no_request_causes_an_internal_error(
    client: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    client.app.tenants.create("ours")
    _furnish(client)
    settings = settings_with(client.folder, *tokens, port=0, stream_count=1_000_000)
    met: Counter[int] = Counter()
    with served(client.app, settings) as address, caplog.at_level(logging.ERROR):
        for number in range(REQUESTS):
            request = fuzzed_request(SEED, number)
            status, head = _exchange(address, request)
            met[status] += 1
            what = f"seed {SEED}, request {number}: {head!r} for {request.data[:3000]!r}"
            assert status < 500, what
            if request.well_formed:
                assert status, what
                if status >= 400:
                    assert b"application/problem+json" in head, what
        print(f"{REQUESTS:,} requests, seed {SEED}: {sorted(met.items())}")
        errors = [each for each in caplog.records if each.levelno >= logging.ERROR]
        assert errors == []
        _check_alive(address)
    # Or the requests were too uniform: nothing written, or nothing refused.
    assert {200, 201, 400, 401, 403, 404, 405, 409, 415, 422} <= set(met), met
    _check_that_jobs_run(client)


def _furnish(client: ApiClient) -> None:
    """Jobs with the ids that the requests use."""
    for number in range(8):
        job_id = client.add(target=f"lane{number % 2}" if number % 3 else None)
        if number % 2:
            client.act(OperatorVerb.PAUSE, job_id)


def _check_alive(address: str) -> None:
    for path in ("/livez", "/readyz", "/api/jobs"):
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Authorization: {bearer('admin')['Authorization']}\r\n\r\n"
        status, _ = _exchange(address, FuzzedRequest(head.encode(), "GET", True))
        assert status == 200, path


def _check_that_jobs_run(client: ApiClient) -> None:
    """In a queue that no request named."""
    client.open(settings_with(client.folder))
    assert client.post("/api/limits/all").status_code == 200  # a request may have set it
    job_id = client.add(queue="after", args={"name": "x"})
    assert client.run(client.app.arun_worker(queues=["after"], until_idle=True)) == 0
    assert client.job(job_id).state is State.SUCCEEDED


def _exchange(address: str, request: FuzzedRequest) -> tuple[int, bytes]:
    """The status, and the head of the response; 0: the server closed the connection without one.
    A stream is left after its head."""
    with _connected(address) as connection:
        try:
            connection.sendall(request.data)
            if not request.well_formed:  # the server may wait for the rest
                connection.shutdown(socket.SHUT_WR)
            head = b""
            while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                head = CONTINUE.sub(b"", head + data)
        except (ConnectionResetError, BrokenPipeError):
            return 0, b""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
    return int(found[1]) if found else 0, head.partition(b"\r\n\r\n")[0]


@contextmanager
def _connected(address: str) -> Iterator[socket.socket]:
    where = urlsplit(address)
    with socket.create_connection(
        (where.hostname, where.port), timeout=TIMEOUT_SECONDS
    ) as connection:
        yield connection


def test_the_requests_reach_every_route_and_depend_on_the_seed_only() -> None:
    requests = [fuzzed_request(SEED, number) for number in range(REQUESTS)]
    assert requests == [fuzzed_request(SEED, number) for number in range(REQUESTS)]
    assert len({each.data for each in requests}) > REQUESTS * 0.9
    assert len(requests) >= 10 * len(TABLE)
    assert 0.3 < sum(each.well_formed for each in requests) / len(requests) < 0.95
    assert any(TOKENS["admin"].encode() in each.data for each in requests)
