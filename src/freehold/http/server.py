"""The API on an address of its own, inside a running event loop, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from freehold.app import Freehold
from freehold.errors import BadSettings
from freehold.http.asgi import api
from freehold.http.request import ApiService
from freehold.http_auth import check_address, tokens_of
from freehold.settings import Settings
from freehold.telemetry import Telemetry, log

#: How long requests under way may take when it ends.
GRACE_SECONDS = 5


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """The address, taken; a port of 0 is any free one. Whoever runs other things too takes it
    before they begin, so that one that is taken already is bad input and nothing more."""
    host, port = settings["http.host"], int(settings["http.port"])
    check_address(host, tokens_of(settings["http.tokens"]))
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(where[:2], family=family)
    except OSError as error:
        raise BadSettings(
            f"the API cannot be served on {host}, port {port} ({error.strerror}): choose another "
            "http.host or http.port"
        ) from None
    with listener:
        yield listener


async def serve_http(
    app: Freehold,
    settings: Settings,
    *,
    telemetry: Telemetry | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve on http.host and http.port until cancelled; ``on_ready`` is told the address."""
    with listening(settings) as listener:
        await serve_on(listener, app, settings, telemetry=telemetry, on_ready=on_ready)


async def serve_on(
    listener: socket.socket,
    app: Freehold,
    settings: Settings,
    *,
    telemetry: Telemetry | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Cancelling ends it in order: streams end, requests under way may finish."""
    application = api(app, settings, telemetry=telemetry)
    host: str = settings["http.host"]
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    server = _UvicornServer(_config(application))
    serving = asyncio.create_task(server.serve([listener]), name="http")
    log.info("the API is served on %s", address)
    if on_ready is not None:
        on_ready(address)
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        await _end(server, serving, application.state.service)
        raise


def _config(application: Callable[..., object]) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # Who a caller is must not depend on what it says about itself.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


async def _end(server: uvicorn.Server, serving: asyncio.Task[None], service: ApiService) -> None:
    service.closing = True
    server.should_exit = True
    await asyncio.wait({serving}, timeout=2 * GRACE_SECONDS)
    serving.cancel()


class _UvicornServer(uvicorn.Server):
    """Signals belong to whoever runs this beside other things."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
