"""The route table: paths, roles, parameters and responses.

Each topic has a module with its own `Routes`; `asgi` joins them. To add a route:

    @routes.get("/api/things/{name}", Role.VIEWER, path=ThingPath, responses={200: Thing})
    async def show_thing(request: ApiRequest) -> Thing:
        '''The text of the OpenAPI description.'''
        return await request.operator.thing(request.path.name)

Authorization, decoding, limits, error responses and the description follow from the table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.decoders import decoder
from freehold.http.auth import TenantScope
from freehold.http_auth import Role

JSON = "application/json"


#: Of an `ApiRequest`, or of a page's `PageRequest`.
Handler = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One row. ``problems``: error statuses besides those of every route of its shape."""

    method: str
    at: str
    role: Role
    handler: Handler
    responses: Mapping[int, Any]
    path: type | None = None
    query: type | None = None
    body: type | None = None
    problems: tuple[int, ...] = ()
    scope: TenantScope = TenantScope.OWN
    #: Headers that the handler reads, with their schemas.
    headers: Mapping[str, Any] = field(default_factory=dict)
    media: str = JSON

    def __post_init__(self) -> None:
        # Checked at run time too: a route that is open by mistake must not exist.
        if not isinstance(self.role, Role):
            raise TypeError(f"{self.method} {self.at}: name the role that it needs")
        for kind in (self.path, self.query, self.body):
            decoder(kind)  # built now, because several threads may use it later

    @property
    def name(self) -> str:
        return f"{self.method} {self.at}"


class Routes:
    """The routes of one topic."""

    def __init__(self) -> None:
        self._routes: list[Route] = []

    def get(self, at: str, role: Role, **shape: Any) -> Callable[[Handler], Handler]:
        return self._add("GET", at, role, shape)

    def post(self, at: str, role: Role, **shape: Any) -> Callable[[Handler], Handler]:
        return self._add("POST", at, role, shape)

    def _add(
        self, method: str, at: str, role: Role, shape: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self._routes.append(Route(method=method, at=at, role=role, handler=handler, **shape))
            return handler

        return add

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)
