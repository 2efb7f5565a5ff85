"""The argument of every handler: the decoded request and the service that received it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from freehold.app import Freehold
from freehold.event_follower import EventFollower
from freehold.http.access_log import AccessLog
from freehold.http.auth import Identify, check_role
from freehold.http.open_streams import OpenStreams
from freehold.http.readiness import Readiness
from freehold.http.request_limits import RequestLimits
from freehold.http_auth import Caller, Role, Token
from freehold.model.audit import HTTP, Author
from freehold.operations.input_checks import author_of
from freehold.operator import AsyncOperator
from freehold.telemetry import Telemetry

if TYPE_CHECKING:
    from freehold.http.routes import Route


class ApiService:
    """One API: its app, tokens and limits."""

    def __init__(
        self,
        app: Freehold,
        *,
        routes: tuple[Route, ...],
        tokens: tuple[Token, ...],
        limits: RequestLimits,
        telemetry: Telemetry,
        identify: Identify | None = None,
    ) -> None:
        """``identify``: decides in place of the tokens."""
        self.app = app
        self.identify = identify
        self.routes = routes
        self.tokens = tokens
        self.tenant = app._tenant_name
        self.limits = limits
        self.telemetry = telemetry
        self.readiness = Readiness(limits)
        self.access_log = AccessLog(telemetry)
        self.streams = OpenStreams(limits.streams, len(tokens))
        self._followers: dict[str | None, EventFollower] = {}
        #: Streams end soon after this is set; other requests end by themselves.
        self.closing = False

    def follower(self, app: Freehold) -> EventFollower:
        """One for the app, and one for each tenant: all listeners of a store share its reads."""
        tenant = app._tenant_name
        if tenant not in self._followers:
            operator = app.aoperator.through(HTTP)
            self._followers[tenant] = EventFollower(operator, self.limits.stream_poll_seconds)
        return self._followers[tenant]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """An authorized request, decoded to the types of its route."""

    service: ApiService
    http: Request
    caller: Caller
    path: Any
    query: Any
    body: Any

    @property
    def tenant(self) -> str | None:
        """The only tenant whose data the response may contain; None: all of them."""
        return self.caller.tenant or self.service.tenant

    @property
    def app(self) -> Freehold:
        """For a token of one tenant, that tenant's app: it reaches no other data."""
        tenant, service = self.caller.tenant, self.service
        return service.app if tenant in (None, service.tenant) else service.app.tenant(tenant)

    @property
    def operator(self) -> AsyncOperator:
        return self.app.aoperator.through(HTTP)

    @property
    def author(self) -> Author:
        """The author of a change, for the audit."""
        return author_of(self.by, HTTP, getattr(self.body, "reason", None))

    @property
    def by(self) -> str:
        """The author for the job's history: the name that the body gives, which is not verified,
        and the name of the token."""
        name = getattr(self.body, "by", None)
        return f"{name} ({self.caller.name})" if name else self.caller.name

    def check_role(self, role: Role, what: str) -> None:
        """For a part of a response that needs a higher role than the route."""
        check_role(self.caller, role, what)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response with a status other than 200."""

    status: int
    value: Any
