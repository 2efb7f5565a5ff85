"""The topics put together: one ASGI application.

It needs no lifespan: connections are opened at first use, and belong to the app that was
handed in.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from operator import attrgetter

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from leasehold.access import tokens_of
from leasehold.app import Leasehold
from leasehold.http import events, health, jobs, lanes, limiting, openapi, queues, tenants, workers
from leasehold.http.answering import answer
from leasehold.http.asked import Service
from leasehold.http.limits import Limits, limits_of
from leasehold.http.problems import Denied, of_denied
from leasehold.http.routes import Route
from leasehold.settings import Settings, load
from leasehold.telemetry import Telemetry

TABLE: tuple[Route, ...] = (
    *health.routes,
    *openapi.routes,
    *jobs.routes,
    *queues.routes,
    *lanes.routes,
    *limiting.routes,
    *tenants.routes,
    *workers.routes,
    *events.routes,
)
#: A target is any text, and can hold a slash.
_ANY_TEXT = {"{target}": "{target:path}"}


def api(
    app: Leasehold,
    settings: Settings | None = None,
    *,
    limits: Limits | None = None,
    telemetry: Telemetry | None = None,
) -> Starlette:
    """The API of an app, or of one tenant's (``app.tenant(name)``), to be served or mounted.
    Tokens and limits are those of the settings; without tokens, only this machine is served."""
    settings = settings or load()
    service = Service(
        app,
        routes=TABLE,
        tokens=tokens_of(settings["http.tokens"]),
        limits=limits or limits_of(settings),
        telemetry=telemetry,
    )
    application = Starlette(
        routes=list(_starlette_routes(service)), exception_handlers={HTTPException: _not_here}
    )
    application.router.redirect_slashes = False
    application.state.service = service
    return application


def _starlette_routes(service: Service) -> Iterator[StarletteRoute]:
    """One for each path, so that a wrong method is told the right ones."""
    by_path = sorted(service.routes, key=attrgetter("at"))
    for at, same in itertools.groupby(by_path, key=attrgetter("at")):
        by_method = {route.method: route for route in same}
        for name, pattern in _ANY_TEXT.items():
            at = at.replace(name, pattern)
        made = StarletteRoute(at, _endpoint(service, by_method), methods=list(by_method))
        if made.methods and any(route.media == events.STREAM for route in by_method.values()):
            made.methods.discard("HEAD")  # nobody would listen
        yield made


def _endpoint(
    service: Service, by_method: dict[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await answer(service, by_method[method], request)

    return endpoint


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return of_denied(Denied(405, "Method not allowed", "see Allow", error.headers))
    return of_denied(
        Denied(error.status_code, "Not found", "there is no such path; see /api/openapi.json")
    )
