"""What a handler gets: the request as it was understood, and the service that it came to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from freehold.app import Freehold
from freehold.http.auth import check_role
from freehold.http.problems import ApiError
from freehold.http.request_limits import RequestLimits
from freehold.http_auth import Caller, Role, Token
from freehold.operator import AsyncOperator
from freehold.telemetry import Telemetry

if TYPE_CHECKING:
    from freehold.http.routes import Route


class ApiService:
    """One API: on which app, for whom, within which limits."""

    def __init__(
        self,
        app: Freehold,
        *,
        routes: tuple[Route, ...],
        tokens: tuple[Token, ...],
        limits: RequestLimits,
        telemetry: Telemetry | None,
    ) -> None:
        self.app = app
        self.routes = routes
        self.tokens = tokens
        self.tenant = app.of_tenant
        self.limits = limits
        self.telemetry = telemetry
        self.streams = 0
        #: Streams end soon after this was set; everything else ends by itself.
        self.closing = False

    @contextmanager
    def streaming(self) -> Iterator[None]:
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    def check_stream(self) -> None:
        if self.streams >= self.limits.streams:
            raise ApiError(
                503,
                "Too many streams",
                f"{self.streams} callers follow events already: try again later",
                {"Retry-After": "5"},
            )


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that was let in, with what it said as the types that its route names."""

    service: ApiService
    request: Request
    caller: Caller
    path: Any
    query: Any
    body: Any

    @property
    def app(self) -> Freehold:
        """For a caller of one tenant, that tenant's: nothing else can be reached through it."""
        tenant, service = self.caller.tenant, self.service
        return service.app if tenant in (None, service.tenant) else service.app.tenant(tenant)

    @property
    def operate(self) -> AsyncOperator:
        return self.app.aoperate

    @property
    def by(self) -> str:
        """Who does it, for the job's history: a name is only said, a role is proven."""
        said = getattr(self.body, "by", None)
        return f"{said} ({self.caller.name})" if said else self.caller.name

    def check_role(self, role: Role, what: str) -> None:
        """Where part of an answer is not for everybody who may ask."""
        check_role(self.caller, role, what)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer with another status than 200."""

    status: int
    value: Any
