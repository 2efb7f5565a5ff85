"""The ASGI application of the dashboard, built from the routes of all pages.

It needs no lifespan, as the API, and can be mounted at any path.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from freehold.app import Freehold
from freehold.dashboard import static_files
from freehold.dashboard.dispatch import HEADERS, Board, dispatch
from freehold.dashboard.pages import (
    actions,
    audit,
    bulk,
    demo,
    edits,
    events,
    failures,
    flows,
    help,
    job,
    jobs,
    lanes,
    limits,
    live,
    overview,
    preferences,
    queues,
    schedules,
    sign_in,
    system,
    tasks,
    tenants,
    workers,
)
from freehold.dashboard.rendering import not_found_page
from freehold.dashboard.sign_in_limit import SignInLimit, UsedCodes
from freehold.http.auth import Identify
from freehold.http.request import ApiService
from freehold.http.request_limits import limits_of
from freehold.http.routes import Route
from freehold.http.routing import by_path, starlette_route
from freehold.http_auth import Role, api_tokens, local_token
from freehold.settings import Settings, load
from freehold.telemetry import Telemetry

TABLE: tuple[Route, ...] = (
    *static_files.routes,
    *sign_in.routes,
    *preferences.routes,
    *help.routes,
    *overview.routes,
    *jobs.routes,
    *job.routes,
    *edits.routes,
    *actions.routes,
    *failures.routes,
    *flows.routes,
    *queues.routes,
    *lanes.routes,
    *limits.routes,
    *tasks.routes,
    *workers.routes,
    *schedules.routes,
    *events.routes,
    *bulk.routes,
    *tenants.routes,
    *system.routes,
    *audit.routes,
    *live.routes,
    *demo.routes,
)


def dashboard(
    app: Freehold,
    settings: Settings | None = None,
    *,
    identify: Identify | None = None,
    service: ApiService | None = None,
    demo_controls: demo.DemoControls | None = None,
) -> Starlette:
    """The dashboard of an app or of one tenant (``app.tenant(name)``), to be mounted anywhere.

    Visitors sign in with a token of the settings. ``identify`` replaces that: it gets the request
    and returns its `Caller`, or None; its role and tenant are what the visitor may see and do.
    ``service``: the API beside it, with which it shares tokens and limits. ``demo_controls``: for
    the demo, whose visitors can kill its workers."""
    settings = settings or load()
    if service is None:
        service = ApiService(
            app,
            routes=TABLE,
            tokens=() if identify is not None else api_tokens(settings.http.tokens),
            limits=limits_of(settings),
            telemetry=Telemetry(),
        )
    secret = None
    if identify is None and not settings.http.tokens:
        secret = Path(local_token()).read_text("ascii").strip()
    board = Board(
        service, settings, identify, SignInLimit(), UsedCodes(), secret, {}, demo_controls
    )
    application = Starlette(
        routes=list(_starlette_routes(board)), exception_handlers={HTTPException: _no_route}
    )
    application.router.redirect_slashes = False
    application.state.board = board
    return application


def _starlette_routes(board: Board) -> Iterator[StarletteRoute]:
    """One for each path, and one for the same page of a tenant."""
    for at, by_method in by_path(TABLE):
        yield starlette_route(at, by_method, partial(dispatch, board))
        if all(route.role is not Role.ANYONE for route in by_method.values()):
            yield starlette_route("/t/{of_tenant}" + at, by_method, partial(dispatch, board))


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = not_found_page(request, error.status_code)
    response.headers.update({**HEADERS, "Cache-Control": "no-store", **(error.headers or {})})
    return response
