"""The API served on its own address."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import httpx
import pytest

from freehold.errors import BadSettings
from freehold.http.server import serve_http
from tests.http.api_client import ApiClient, bearer, served, serving, settings_with


def test_without_its_extra_the_error_names_the_package_to_install() -> None:
    program = "import sys; sys.modules['starlette'] = None; import freehold.http"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert "BadSettings: the HTTP API needs starlette" in ended.stderr
    assert "install `freehold[http]`" in ended.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])
def test_another_address_is_refused_without_tokens(sqlite_client: ApiClient, host: str) -> None:
    settings = settings_with(sqlite_client.folder, host=host, port=0)
    with pytest.raises(BadSettings, match=r"set http\.tokens first"):
        sqlite_client.run(serve_http(sqlite_client.app, settings))


def test_another_address_is_served_with_tokens(client: ApiClient, tokens: list[str]) -> None:
    settings = settings_with(client.folder, *tokens, host="0.0.0.0", port=0)
    with served(client.app, settings) as address:
        here = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{here}/api/stats").status_code == 401
        assert httpx.get(f"{here}/api/stats", headers=bearer("viewer")).status_code == 200
        assert "server" not in httpx.get(f"{here}/livez").headers


def test_an_occupied_port_is_an_error_of_the_settings(sqlite_client: ApiClient) -> None:
    async def twice() -> None:
        free = settings_with(sqlite_client.folder, port=0)
        async with serving(sqlite_client.app, free) as address:
            taken = settings_with(sqlite_client.folder, port=int(address.rpartition(":")[2]))
            with pytest.raises(BadSettings, match="choose another"):
                await serve_http(sqlite_client.app, taken)

    sqlite_client.run(twice())


def test_cancelling_stops_the_server_and_frees_the_port(sqlite_client: ApiClient) -> None:
    async def life() -> None:
        settings = settings_with(sqlite_client.folder, port=0)
        async with serving(sqlite_client.app, settings) as address, httpx.AsyncClient() as caller:
            assert (await caller.get(f"{address}/readyz")).status_code == 200
        async with httpx.AsyncClient() as caller:
            with pytest.raises(httpx.ConnectError):
                await caller.get(f"{address}/livez")
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if task.get_name() == "http"]

    sqlite_client.run(life())
