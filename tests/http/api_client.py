"""A client of the API, in this process or on an address of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx
import pytest
from starlette.types import ASGIApp

from freehold import Freehold, Job, Retry
from freehold.http import api
from freehold.http.request_limits import RequestLimits
from freehold.http.server import serve_http
from freehold.model.operator_actions import OperatorVerb
from freehold.settings import Settings, load
from freehold.telemetry import Telemetry

T = TypeVar("T")
TIMEOUT_SECONDS = 120.0
TOKENS = {
    role: f"{role.replace('@', '-of-')}-token-chosen-by-chance"
    for role in ("viewer", "operator", "admin", "admin@other", "admin@ours")
}


def settings_with(folder: Path, *tokens: str, **values: Any) -> Settings:
    """The default settings with these values of [http] and these tokens; without any, all callers
    on this machine are admitted."""
    flags = {f"http.{name}": value for name, value in values.items()}
    return load({"http.tokens": list(tokens) or "local", **flags}, {}, folder)


def app_on(url: str) -> Freehold:
    """An app with a few tasks."""
    app = Freehold(url)

    @app.task(name="greet", retry=Retry(max_attempts=2, base_seconds=0))
    async def greet(name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @app.task(name="broken", retry=Retry(max_attempts=1))
    async def broken(secret: str) -> None:
        raise ValueError("it broke")

    return app


class Client(Protocol):
    """Of an app, with a folder for its settings."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Client)


def client_on(url: str, folder: Path, kind: Callable[[Freehold, Path], C]) -> Iterator[C]:
    """A client of an app on a new store, closed after its test."""
    app = app_on(url)
    app.migrate()
    with closing(kind(app, folder)) as client:
        yield client


class ApiClient:
    """One client of one API, on one event loop."""

    def __init__(self, app: Freehold, folder: Path) -> None:
        self.app = app
        self.folder = folder
        self.runner = asyncio.Runner()
        self.telemetry = Telemetry()
        self.open(settings_with(folder))

    def open(
        self, settings: Settings, limits: RequestLimits | None = None, tenant: str | None = None
    ) -> None:
        """Replaces the API with another one on the same app, or on one of its tenants."""
        app = self.app if tenant is None else self.app.tenant(tenant)
        self.api = api(app, settings, limits=limits, telemetry=self.telemetry)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def request(
        self,
        method: str,
        path: str,
        *,
        to: ASGIApp | None = None,
        host: str = "localhost",
        peer: tuple[str, int] = ("127.0.0.1", 1),
        **request: Any,
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(to or self.api, client=peer)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as caller:
                return await caller.request(method, path, **request)

        return self.run(send())

    def get(self, path: str, **request: Any) -> httpx.Response:
        return self.request("GET", path, **request)

    def post(self, path: str, body: Any = None, **request: Any) -> httpx.Response:
        return self.request("POST", path, json={} if body is None else body, **request)

    def get_json(self, path: str, **request: Any) -> Any:
        """The body of a successful GET."""
        response = self.get(path, **request)
        assert response.status_code == 200, response.text
        return response.json()

    # -- behind the API ----------------------------------------------------------------------

    def add(self, task: str = "greet", **body: Any) -> int:
        response = self.post("/api/jobs", {"task": task, "raw": True, **body})
        assert response.status_code == 201, response.text
        return int(response.json()["id"])

    def act(self, verb: OperatorVerb, job_id: int) -> None:
        getattr(self.app.operator, verb)(job_id, by="ann")

    def job(self, job_id: int) -> Job:
        return self.app._client.store.read([job_id])[job_id]

    def work(self) -> None:
        """Runs a worker until it is idle."""
        assert self.run(self.app.arun_worker(until_idle=True)) == 0

    def close(self) -> None:
        self.runner.run(self.app.aclose())
        self.runner.close()


def problem(response: httpx.Response, status: int, slug: str) -> str:
    """The detail of an error response, which is as documented."""
    assert (response.status_code, response.headers["content-type"]) == (
        status,
        "application/problem+json",
    ), response.text
    document = response.json()
    assert document["status"] == status
    assert document["type"] == f"urn:freehold:problem:{slug}"
    assert document["title"]
    detail: str = document["detail"]
    return detail


def bearer(role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[role]}"}


@asynccontextmanager
async def serving(app: Freehold, settings: Settings) -> AsyncIterator[str]:
    """Serves on this event loop; yields the address."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_http(app, settings, on_ready=ready.set_result))
    try:
        yield await asyncio.wait_for(ready, TIMEOUT_SECONDS)
    finally:
        task.cancel()
        await asyncio.wait({task})


@contextmanager
def served(
    app: Freehold,
    settings: Settings,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> Iterator[str]:
    """Serves in a thread of its own, for blocking clients; yields the address."""
    address: list[str] = []
    ready, end = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def life() -> None:
        loops.append(asyncio.get_running_loop())
        async with serving(app, settings) as where:
            address.append(where)
            ready.set()
            await end.wait()
        await app._database.aclose()

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(life())

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(TIMEOUT_SECONDS)
    try:
        yield address[0]
    finally:
        loops[0].call_soon_threadsafe(end.set)
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive()


def set_tokens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A token of each role in the environment, as the settings name them."""
    texts = []
    for role, secret in TOKENS.items():
        name = "TOKEN_" + role.upper().replace("@", "_")
        monkeypatch.setenv(name, secret)
        texts.append(f"{role}:env:{name}")
    return texts
