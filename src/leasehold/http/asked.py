"""What a handler gets: the request as it was understood, and the service that it came to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from leasehold.access import Caller, Role, Token
from leasehold.app import Leasehold
from leasehold.http.auth import check_role
from leasehold.http.limits import Limits
from leasehold.http.problems import Denied
from leasehold.operate import AwaitedOperate
from leasehold.telemetry import Telemetry

if TYPE_CHECKING:
    from leasehold.http.routes import Route


class Service:
    """One API: on which app, for whom, within which limits."""

    def __init__(
        self, app: Leasehold, *, routes: tuple[Route, ...], tokens: tuple[Token, ...],
        limits: Limits, telemetry: Telemetry | None,
    ) -> None:  # fmt: skip
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
            raise Denied(
                503,
                "Too many streams",
                f"{self.streams} callers follow events already: try again later",
                {"Retry-After": "5"},
            )


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was let in, with what it said as the types that its route names."""

    service: Service
    request: Request
    caller: Caller
    path: Any
    query: Any
    body: Any

    @property
    def app(self) -> Leasehold:
        """For a caller of one tenant, that tenant's: nothing else can be reached through it."""
        tenant, service = self.caller.tenant, self.service
        return service.app if tenant in (None, service.tenant) else service.app.tenant(tenant)

    @property
    def operate(self) -> AwaitedOperate:
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
class Done:
    """An answer with another status than 200."""

    status: int
    value: Any
