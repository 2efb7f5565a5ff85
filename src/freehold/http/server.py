"""Serves the API and the dashboard on an address, in a running event loop, until canceled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import shlex
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from h11 import ProtocolError

from freehold.app import Freehold
from freehold.dashboard.pages.demo import DemoControls
from freehold.dashboard.site import Site, dashboard_address
from freehold.errors import BadSettings
from freehold.http import connections
from freehold.http.connections import ConnectionLimits, connections_allowed, limited
from freehold.http.request import ApiService
from freehold.http_auth import check_address, local_token, tokens_of
from freehold.open_files import is_out_of_files
from freehold.rare_warning import RareWarning
from freehold.settings import Settings
from freehold.telemetry import Telemetry, log

#: How long running requests may take when the server stops.
GRACE_SECONDS = 5
#: Connections that the system may hold until they are accepted.
_BACKLOG = 1024
#: asyncio accepts so many before it handles the first of them, so it must stay below any limit.
_ACCEPT_BATCH = 16


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Binds the address; port 0 is any free port. `freehold up` binds it before it starts
    anything else, so that an occupied port is an error of the settings and has no other effect."""
    host, port = settings.http.host, settings.http.port
    check_address(host, tokens_of(settings.http.tokens))
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
    demo_controls: DemoControls | None = None,
) -> None:
    """Serves on http.host and http.port until canceled; calls ``on_ready`` with the address."""
    with listening(settings) as listener:
        await serve_on(
            listener,
            app,
            settings,
            telemetry=telemetry,
            on_ready=on_ready,
            demo_controls=demo_controls,
        )


async def serve_on(
    listener: socket.socket,
    app: Freehold,
    settings: Settings,
    *,
    telemetry: Telemetry | None = None,
    on_ready: Callable[[str], None] | None = None,
    demo_controls: DemoControls | None = None,
) -> None:
    """Serves until canceled. Then streams end, and running requests may finish."""
    application = Site(app, settings, telemetry, demo_controls)
    host = settings.http.host
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(_WITHOUT_PROTOCOL_ERRORS)
    limits = ConnectionLimits(connections_allowed(settings.http.connection_count))
    server = _UvicornServer(_config(application, limits))
    serving = asyncio.create_task(server.serve([listener]), name="http")
    log.info("the API is served on %s", address)
    log.info("open the dashboard: %s", dashboard_address(address, settings))
    if not settings.http.tokens:
        log.info("try: %s", example_of(address))
    if on_ready is not None:
        on_ready(address)
    try:
        with _without_accept_errors():
            await asyncio.shield(serving)
    except asyncio.CancelledError:
        await _stop(server, serving, application.service)
        raise


def example_of(address: str) -> str:
    """A command for the token that the API made itself. It names the file: logs are no place for a
    token, which they keep and pass on."""
    file = shlex.quote(str(local_token()))
    return f'curl -H "Authorization: Bearer $(cat {file})" {address}/api/stats'


def _config(application: Callable[..., object], limits: ConnectionLimits) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=limited(limits),
        ws="none",
        backlog=_ACCEPT_BATCH,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # The peer's address must not depend on what a client claims in its headers.
        proxy_headers=False,
        timeout_keep_alive=math.ceil(connections.IDLE_SECONDS),
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


async def _stop(server: uvicorn.Server, serving: asyncio.Task[None], service: ApiService) -> None:
    service.closing = True
    server.should_exit = True
    await asyncio.wait({serving}, timeout=2 * GRACE_SECONDS)
    serving.cancel()


class _WithoutProtocolErrors(logging.Filter):
    """A client that sends garbage after its request gets 400 from uvicorn, so that the response of
    the API cannot be sent any more, or the other way round. The connection is closed, and nothing
    else happens; but without this filter, anyone could fill the log with tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], ProtocolError))


#: One object, which is added once however often an API is served.
_WITHOUT_PROTOCOL_ERRORS = _WithoutProtocolErrors()


@contextlib.contextmanager
def _without_accept_errors() -> Iterator[None]:
    """While no file can be opened, each attempt to accept a connection fails: thousands of errors a
    second, of which one a minute is logged. The event loop tries again by itself."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    rare = RareWarning("the API cannot accept connections: %s; see the limit of open files")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if is_out_of_files(context.get("exception")):
            rare.log(context["exception"])
        elif before is not None:
            before(loop, context)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


class _UvicornServer(uvicorn.Server):
    """Handles no signals: the process that runs this server does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
