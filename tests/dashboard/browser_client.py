"""A browser without JavaScript: it keeps cookies, follows redirects, and sends forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, TypeVar

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from freehold import Freehold
from freehold.dashboard import dashboard
from freehold.dashboard.dispatch import Board
from freehold.http.auth import Identify
from freehold.settings import Settings
from tests.http.api_client import TOKENS, settings_with

T = TypeVar("T")
HOST = "localhost:8787"


class BrowserClient:
    """One app with its dashboard, and visitors of it."""

    def __init__(self, app: Freehold, folder: Path) -> None:
        self.app = app
        self.folder = folder
        self.runner = asyncio.Runner()
        self.open(settings_with(folder))

    def open(
        self,
        settings: Settings,
        *,
        tenant: str | None = None,
        at: str = "/ui",
        identify: Identify | None = None,
    ) -> None:
        """Replaces the dashboard by another one on the same app, mounted at a path."""
        app = self.app if tenant is None else self.app.tenant(tenant)
        self.at = at
        mounted = dashboard(app, settings, identify=identify)
        self.board: Board = mounted.state.board
        self.pages: ASGIApp = Starlette(routes=[Mount(at, mounted)])

    def visitor(self, role: str | None = None, **options: Any) -> Visitor:
        """Signed in with the token of the role, if one is given."""
        visitor = Visitor(self, **options)
        if role is not None:
            response = visitor.sign_in(TOKENS[role])
            assert response.status_code == 303, response.text
        return visitor

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def work(self) -> None:
        assert self.run(self.app.arun_worker(until_idle=True)) == 0

    def close(self) -> None:
        self.runner.run(self.app.aclose())
        self.runner.close()


class Visitor:
    def __init__(self, client: BrowserClient, host: str = HOST, peer: str = "127.0.0.1") -> None:
        self._client = client
        self._host = host
        self._peer = peer
        self.cookies: dict[str, str] = {}

    def request(
        self, method: str, path: str, *, follow: bool = False, **request: Any
    ) -> httpx.Response:
        """``path`` is that of a page, without the place where the dashboard is mounted."""
        if not path.startswith(f"{self._client.at}/"):
            path = self._client.at + path
        response = self._client.run(self._send(method, path, request))
        while follow and response.status_code == 303:
            response = self._client.run(self._send("GET", response.headers["location"], {}))
        return response

    async def _send(self, method: str, path: str, request: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._client.pages, client=(self._peer, 1))
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        request["headers"] = {"Cookie": cookies, **request.get("headers", {})}
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{self._host}") as http:
            response: httpx.Response = await http.request(method, path, **request)
        for text in response.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(text).items():
                self.cookies[name] = morsel.value
        return response

    def get(self, path: str, **request: Any) -> httpx.Response:
        return self.request("GET", path, **request)

    def page(self, path: str) -> str:
        """The HTML of a page that exists, after redirects."""
        response = self.get(path, follow=True)
        assert response.status_code == 200, response.text
        return response.text

    def sign_in(self, token: str, **fields: str) -> httpx.Response:
        self.get("/login")
        return self.post("/login", {"token": token, **fields})

    def form_token(self, path: str = "/help") -> str:
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', self.get(path).text)
        return found[1] if found else ""

    def post(
        self, path: str, fields: dict[str, Any] | None = None, **request: Any
    ) -> httpx.Response:
        """Sends a form with the token of this visitor."""
        token = self.form_token("/login" if path == "/login" else "/help")
        data = {"form_token": token, **(fields or {})}
        return self.request("POST", path, data=data, **request)

    def done(self, path: str, fields: dict[str, Any] | None = None) -> str:
        """Sends a form that succeeds; returns the page that it leads to."""
        response = self.post(path, fields, follow=True)
        assert response.status_code == 200, response.text
        return response.text


def text_of(html: str) -> str:
    """What a reader sees."""
    main = re.search(r"<main.*?</main>", html, re.DOTALL)
    without_tags = re.sub(r"<[^>]*>", " ", main[0] if main else html)
    return " ".join(unescape(without_tags).split())
