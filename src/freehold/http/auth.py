"""Authorization of requests. A request that no rule admits is refused."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto
from typing import TypeAlias

from starlette.requests import Request

from freehold.http.problems import ApiError
from freehold.http_auth import (
    LOCAL,
    Caller,
    Role,
    Token,
    caller_of,
    is_loopback,
    refusal_of_browser,
    refusal_of_proxy,
)

#: Given by the application that the API is mounted into: the caller of a request, or None.
Identify: TypeAlias = Callable[[Request], Caller | Awaitable[Caller | None] | None]
_ANYONE = Caller("anyone", Role.ANYONE)


class TenantScope(Enum):
    """Which data a route is about. It limits the routes for a token of one tenant, and those of
    an API of one tenant."""

    #: The data of one tenant, read through that tenant's store: see `ApiRequest.app`.
    OWN = auto()
    #: The tenant that the path names, which must be that of the token and of the API.
    NAMED = auto()
    #: All tenants. Refused to a token of one tenant, and by an API of one tenant.
    ALL = auto()


def authenticated(request: Request, role: Role, tokens: Sequence[Token]) -> Caller:
    """Returns the caller, or raises if a route of this role needs one that is not recognized."""
    if role is Role.ANYONE:
        return _ANYONE
    if not tokens:
        _check_local(request)
        return LOCAL
    caller = caller_of(request.headers.get("authorization"), tokens)
    if caller is None:
        raise ApiError(
            401,
            "Unauthorized",
            "send a token of http.tokens, as `Authorization: Bearer <token>`",
            {"WWW-Authenticate": 'Bearer realm="freehold"'},
        )
    return caller


async def identified(request: Request, role: Role, identify: Identify) -> Caller:
    """The caller as the application knows it, in place of tokens. It may know it by a cookie, which
    browsers send with requests of other sites, too."""
    if role is Role.ANYONE:
        return _ANYONE
    if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        raise ApiError(403, "Forbidden", "requests of other sites are not accepted")
    found = identify(request)
    caller = await found if inspect.isawaitable(found) else found
    if caller is None:
        raise ApiError(401, "Unauthorized", "this application does not know the caller")
    if not isinstance(caller, Caller):
        raise TypeError(f"identify returned a {type(caller).__name__}, not a Caller or None")
    return caller


def authorize(
    request: Request, caller: Caller, role: Role, scope: TenantScope, served: str | None
) -> None:
    """Raises if the caller may not do this. ``served``: the tenant of this API, if it serves only
    one."""
    if role is Role.ANYONE:
        return
    named = request.path_params.get("tenant")
    if caller.tenant is not None:
        if served not in (None, caller.tenant):
            raise ApiError(403, "Forbidden", "this token is of another tenant")
        _check_tenant("token", caller.tenant, scope, named)
    if served is not None:
        _check_tenant("API", served, scope, named)
    check_role(caller, role, "this")


_OF_ALL_TENANTS = {
    "token": "a token of all tenants: one without @tenant",
    "API": "an API of all tenants: `api(app)`, or `freehold up` without --tenant",
}


def _check_tenant(what: str, tenant: str, scope: TenantScope, named: str | None) -> None:
    """For the tenant of a token or of an API."""
    if scope is TenantScope.ALL:
        raise ApiError(403, "Forbidden", f"this needs {_OF_ALL_TENANTS[what]}")
    if scope is TenantScope.NAMED and named != tenant:
        raise ApiError(403, "Forbidden", f"this {what} is of another tenant")


def check_role(caller: Caller, role: Role, what: str) -> None:
    if caller.role < role:
        raise ApiError(403, "Forbidden", f"{what} needs a token of the role {role.name.lower()}")


def _check_local(request: Request) -> None:
    """With LOCAL_ACCESS: admits only this machine, and no pages of other sites in its browsers."""
    headers = request.headers
    if request.client is None or not is_loopback(request.client.host):
        raise ApiError(403, "Forbidden", "with http.tokens = local only this machine is served")
    refusal = refusal_of_proxy(headers.keys()) or refusal_of_browser(
        headers.get("host"), headers.get("origin"), headers.get("sec-fetch-site")
    )
    if refusal is not None:
        raise ApiError(403, "Forbidden", refusal)
