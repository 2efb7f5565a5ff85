"""Whether a request is let in. What no rule lets in is refused."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from leasehold.access import (
    LOCAL,
    Caller,
    Role,
    Token,
    caller_of,
    is_loopback,
    refusal_of_browser,
)
from leasehold.http.problems import Denied

_ANYONE = Caller("anyone", Role.ANYONE)
#: A proxy on this machine asks on behalf of somebody who may be anywhere.
_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def admitted(
    request: Request, role: Role, tokens: Sequence[Token], tenant: str | None
) -> Caller:  # fmt: skip
    if role is Role.ANYONE:
        return _ANYONE
    if not tokens:
        _check_local(request)
        return LOCAL
    caller = caller_of(request.headers.get("authorization"), tokens)
    if caller is None:
        raise Denied(
            401,
            "Unauthorized",
            "send a token of http.tokens, as `Authorization: Bearer <token>`",
            {"WWW-Authenticate": 'Bearer realm="leasehold"'},
        )
    if not caller.may(Role.VIEWER, tenant):
        raise Denied(403, "Forbidden", "this token is of another tenant")
    check_role(caller, role, tenant, "this")
    return caller


def check_role(caller: Caller, role: Role, tenant: str | None, what: str) -> None:
    if not caller.may(role, tenant):
        raise Denied(403, "Forbidden", f"{what} needs a token of the role {role.name.lower()}")


def _check_local(request: Request) -> None:
    """Without tokens: this machine only, and no page of another site in its browsers."""
    headers = request.headers
    if request.client is None or not is_loopback(request.client.host):
        raise Denied(403, "Forbidden", "without http.tokens only this machine is served")
    if any(name in headers for name in _OF_PROXIES):
        raise Denied(403, "Forbidden", "behind a proxy http.tokens must be set")
    refusal = refusal_of_browser(
        headers.get("host"), headers.get("origin"), headers.get("sec-fetch-site")
    )
    if refusal is not None:
        raise Denied(403, "Forbidden", refusal)
