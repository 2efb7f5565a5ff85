"""Routes of Starlette from rows of a table: of the API, and of the dashboard."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from freehold.http.events import STREAM
from freehold.http.routes import Route

Dispatch: TypeAlias = Callable[[Route, Request], Awaitable[Response]]
#: Values that can contain a slash.
_PATTERNS = {"{target}": "{target:path}", "{file}": "{file:path}"}


def by_path(routes: Iterable[Route]) -> Iterator[tuple[str, dict[str, Route]]]:
    """The routes of each path by method, so that a response to a wrong method can name the right
    ones. A path stands behind those that it is the beginning of: a target can contain a slash."""
    ordered = sorted(routes, key=lambda route: route.at + "\x7f")
    for at, same in itertools.groupby(ordered, key=attrgetter("at")):
        yield at, {route.method: route for route in same}


def starlette_route(at: str, by_method: Mapping[str, Route], dispatch: Dispatch) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await dispatch(by_method[method], request)

    for name, pattern in _PATTERNS.items():
        at = at.replace(name, pattern)
    route = StarletteRoute(at, endpoint, methods=list(by_method))
    if route.methods and any(each.media == STREAM for each in by_method.values()):
        route.methods.discard("HEAD")  # a stream without a body has no use
    return route
