"""The limit of event streams: for many requests at once, for each token, and for tenants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from freehold.http.request_limits import RequestLimits
from tests.http.api_client import TIMEOUT_SECONDS, ApiClient, app_on, bearer, settings_with


class Streams:
    """Requests for event streams that are sent at once, and stay open until the block ends."""

    def __init__(self, client: ApiClient) -> None:
        self._api = client.api
        self._tasks: list[asyncio.Task[None]] = []
        self._end = asyncio.Event()

    async def open(self, caller: str, number: int, position: str = "0") -> list[int]:
        """The statuses of so many requests of one caller."""
        statuses = [asyncio.get_running_loop().create_future() for _ in range(number)]
        self._tasks += [
            asyncio.create_task(self._request(caller, position, status)) for status in statuses
        ]
        return list(await asyncio.wait_for(asyncio.gather(*statuses), TIMEOUT_SECONDS))

    async def close(self) -> None:
        self._end.set()
        await asyncio.wait_for(asyncio.gather(*self._tasks), TIMEOUT_SECONDS)

    async def _request(self, caller: str, position: str, status: asyncio.Future[int]) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                status.set_result(message["status"])

        async def receive() -> dict[str, Any]:
            await self._end.wait()
            return {"type": "http.disconnect"}

        headers = {"Host": "localhost", **bearer(caller), "Last-Event-ID": position}
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/events",
            "query_string": b"",
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
            "client": ("127.0.0.1", 1),
        }
        await self._api(scope, receive, send)


@asynccontextmanager
async def streams(client: ApiClient) -> AsyncIterator[Streams]:
    opened = Streams(client)
    try:
        yield opened
    finally:
        await opened.close()
    assert client.api.state.service.streams.count == 0


def _open_api(client: ApiClient, tokens: list[str], limit: int) -> None:
    for name in ("ours", "other"):
        client.app.tenants.create(name)
    client.open(settings_with(client.folder, *tokens), RequestLimits(streams=limit))


def test_requests_at_the_same_time_cannot_exceed_the_share_of_their_token(
    client: ApiClient, tokens: list[str]
) -> None:
    _open_api(client, tokens, limit=20)

    async def scenario() -> None:
        async with streams(client) as opened:
            for caller in ("admin@ours", "admin@other", "viewer", "operator"):
                statuses = await opened.open(caller, 40)
                assert sorted(statuses) == [200] * 5 + [503] * 35, caller
            assert await opened.open("admin", 1) == [503]  # all 20 are open

    client.run(scenario())


def test_tenants_leave_streams_for_callers_of_all_tenants(
    sqlite_client: ApiClient, tokens: list[str]
) -> None:
    _open_api(sqlite_client, tokens, limit=8)

    async def scenario() -> None:
        async with streams(sqlite_client) as opened:
            assert sorted(await opened.open("admin@ours", 10)) == [200] * 4 + [503] * 6
            assert sorted(await opened.open("admin@other", 10)) == [200] * 2 + [503] * 8
            assert sorted(await opened.open("viewer", 10)) == [200] * 2 + [503] * 8

    sqlite_client.run(scenario())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_small_limit_is_kept(sqlite_client: ApiClient, tokens: list[str], number: int) -> None:
    _open_api(sqlite_client, tokens, limit=number)

    async def scenario() -> None:
        async with streams(sqlite_client) as opened:
            of_tenant = await opened.open("admin@ours", 9)
            assert of_tenant.count(200) == max(1, number - 1)
            of_all = await opened.open("viewer", 9)
            assert of_tenant.count(200) + of_all.count(200) == number

    sqlite_client.run(scenario())


def test_the_only_token_has_all_streams(sqlite_client: ApiClient, tokens: list[str]) -> None:
    _open_api(sqlite_client, [each for each in tokens if each.startswith("viewer:")], limit=20)

    async def scenario() -> None:
        async with streams(sqlite_client) as opened:
            assert sorted(await opened.open("viewer", 40)) == [200] * 20 + [503] * 20

    sqlite_client.run(scenario())


def test_a_refused_request_is_not_counted(sqlite_client: ApiClient, tokens: list[str]) -> None:
    _open_api(sqlite_client, tokens, limit=20)

    async def scenario() -> None:
        async with streams(sqlite_client) as opened:
            for position in ("x", "0"):
                statuses = await opened.open("viewer", 5, position)
                assert statuses == [422 if position == "x" else 200] * 5

    sqlite_client.run(scenario())


def test_a_request_is_not_counted_after_an_error_of_the_store(
    sqlite_client: ApiClient, tokens: list[str]
) -> None:
    client = ApiClient(app_on("postgresql://127.0.0.1:1/none"), sqlite_client.folder)
    client.open(settings_with(client.folder, *tokens), RequestLimits(streams=20))
    try:
        for _ in range(6):
            response = client.get("/api/events", headers=bearer("viewer"))
            assert response.json()["type"].endswith("store-unavailable")
    finally:
        client.close()
