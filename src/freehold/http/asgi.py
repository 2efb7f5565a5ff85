"""The ASGI application, built from the routes of all topics.

It needs no lifespan: connections are opened at first use, and belong to the given app.
"""

from __future__ import annotations

from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from freehold.app import Freehold
from freehold.http import (
    audit,
    bulk,
    edits,
    events,
    findings,
    flows,
    health,
    job_stream,
    jobs,
    lanes,
    limits,
    openapi,
    queues,
    retention,
    schedules,
    signals,
    tenants,
    workers,
)
from freehold.http.auth import Identify
from freehold.http.dispatch import dispatch
from freehold.http.problems import ApiError, of_api_error
from freehold.http.request import ApiService
from freehold.http.request_limits import RequestLimits, limits_of
from freehold.http.routes import Route
from freehold.http.routing import by_path, starlette_route
from freehold.http_auth import api_tokens, local_token
from freehold.settings import Settings, load
from freehold.telemetry import Telemetry, log

TABLE: tuple[Route, ...] = (
    *health.routes,
    *openapi.routes,
    *jobs.routes,
    *edits.routes,
    *findings.routes,
    *queues.routes,
    *lanes.routes,
    *limits.routes,
    *schedules.routes,
    *signals.routes,
    *flows.routes,
    *tenants.routes,
    *workers.routes,
    *audit.routes,
    *bulk.routes,
    *retention.routes,
    *events.routes,
    *job_stream.routes,
)


def api(
    app: Freehold,
    settings: Settings | None = None,
    *,
    limits: RequestLimits | None = None,
    telemetry: Telemetry | None = None,
    identify: Identify | None = None,
) -> Starlette:
    """The API of an app or of one tenant (``app.tenant(name)``). Tokens and limits are those of
    the settings. Without tokens in the settings, callers need the token in the file of
    `http_auth.local_token`, which is created if it does not exist.

    ``identify`` replaces the tokens, where the API is mounted into an application that knows its
    users: it gets the request and returns a `Caller` with a role, and a tenant if it may see only
    that, or None. It may be a coroutine function."""
    settings = settings or load()
    if identify is None and not settings.http.tokens:
        log.info("no http.tokens are set: the API accepts the token in %s", local_token())
    service = ApiService(
        app,
        routes=TABLE,
        tokens=() if identify is not None else api_tokens(settings.http.tokens),
        identify=identify,
        limits=limits or limits_of(settings),
        telemetry=telemetry or Telemetry(),
    )
    routes = [
        starlette_route(at, by_method, partial(dispatch, service))
        for at, by_method in by_path(TABLE)
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    application.router.redirect_slashes = False
    application.state.service = service
    return application


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return of_api_error(ApiError(405, "Method not allowed", "see Allow", error.headers))
    mounted_at = request.scope.get("root_path", "")
    detail = f"there is no such path; see {mounted_at}/api/openapi.json"
    return of_api_error(ApiError(error.status_code, "Not found", detail))
