"""The route table: what can be asked, by whom, with what, and what is answered.

A topic has a file with its own `Routes`; `service` puts them together. To add a route:

    @routes.get("/api/things/{name}", Role.VIEWER, path=ThingPath, answers={200: Thing})
    async def show_thing(asked: Asked) -> Thing:
        '''What stands in the description.'''
        return await asked.operate.thing(asked.path.name)

Everything else (who may, decoding, limits, problems, the description) follows from the table.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.decoders import decoder
from freehold.http.auth import TenantScope
from freehold.http.request import ApiRequest
from freehold.http_auth import Role

JSON = "application/json"


Handler = Callable[[ApiRequest], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One row. ``problems``: those besides what every route of its shape can have."""

    method: str
    at: str
    role: Role
    handler: Handler
    answers: Mapping[int, Any]
    path: type | None = None
    query: type | None = None
    body: type | None = None
    problems: tuple[int, ...] = ()
    whose: TenantScope = TenantScope.OWN
    #: Headers that mean something here, by their schema; the handler reads them itself.
    headers: Mapping[str, Any] = field(default_factory=dict)
    media: str = JSON

    def __post_init__(self) -> None:
        # The type checker says so too; but a route that is open by mistake must not exist.
        if not isinstance(self.role, Role):
            raise TypeError(f"{self.method} {self.at}: say which role may ask")
        for kind in (self.path, self.query, self.body):
            decoder(kind)  # learned now: services of several threads will read them

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
