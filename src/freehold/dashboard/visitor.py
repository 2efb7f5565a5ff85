"""The caller behind a request of a browser: by the session of its cookie, as a caller on this
machine, or as the application decides that the dashboard is mounted into.

The cookie opens pages only; the API accepts none, so that a page of another site cannot use it. It
holds a random value. With tokens this is the session, of which the store has the digest. Without
tokens it only carries the form token: see `form_token`.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from freehold.http.auth import Identify, authenticated
from freehold.http.problems import ApiError
from freehold.http.request import ApiService
from freehold.http_auth import Caller, Role, Token, token_caller
from freehold.store.types import LIFETIME_SECONDS

ANYONE = Caller("anyone", Role.ANYONE)


class Visitor(NamedTuple):
    """``cookie``: the value of the cookie ``cookie_name``, which is new if ``is_new``."""

    caller: Caller
    cookie: str
    cookie_name: str
    is_new: bool = False

    @property
    def form_token(self) -> str:
        return form_token(self.cookie)


class NotSignedIn(Exception):
    """The request has no session, or one that has ended."""


async def visitor_of(
    request: Request, role: Role, service: ApiService, identify: Identify | None
) -> Visitor:
    """Raises NotSignedIn, or ApiError if nothing would admit the request."""
    if role is Role.ANYONE:
        return _with_cookie(ANYONE, request, sign_in_cookie_name(request))
    name = cookie_name(request)
    if identify is not None:
        found = identify(request)
        caller = await found if inspect.isawaitable(found) else found
        if caller is None:
            raise ApiError(403, "Forbidden", "this application does not admit you here")
        return _with_cookie(caller, request, name)
    if not service.tokens:
        return _with_cookie(authenticated(request, role, ()), request, name)
    cookie = request.cookies.get(name)
    if not cookie:
        raise NotSignedIn
    return Visitor(await _of_session(service, cookie), cookie, name)


async def _of_session(service: ApiService, cookie: str) -> Caller:
    """A session ends with its token: a digest that is not configured any more opens nothing."""
    session = await service.app._client.awaited.use_web_session(digest_of(cookie))
    if session is None:
        raise NotSignedIn
    for position, token in enumerate(service.tokens, 1):
        if hmac.compare_digest(token.digest, session.token_digest):
            caller = token_caller(token, position)
            return caller._replace(name=_named(session.author, caller.name))
    raise NotSignedIn


def _named(name: str | None, role: str) -> str:
    return f"{name} ({role})" if name else role


def _with_cookie(caller: Caller, request: Request, name: str) -> Visitor:
    cookie = request.cookies.get(name)
    return Visitor(caller, cookie or secrets.token_urlsafe(32), name, not cookie)


async def sign_in(service: ApiService, token: Token, name: str | None) -> str:
    """Opens a session; returns its cookie, which is new, so that it cannot be known before."""
    cookie = secrets.token_urlsafe(32)
    store = service.app._client.awaited
    await store.open_web_session(digest_of(cookie), token.digest, name)
    return cookie


async def sign_out(service: ApiService, cookie: str) -> None:
    await service.app._client.awaited.close_web_sessions(digest_of(cookie))


def digest_of(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()


def form_token(cookie: str) -> str:
    """Sent with each form. A page of another site cannot read the cookie, and so cannot make it."""
    return hashlib.sha256(b"form token of " + cookie.encode("utf-8", "replace")).hexdigest()


# -- the cookie ------------------------------------------------------------------------------


def is_encrypted(request: Request) -> bool:
    """Also where a proxy ends TLS. A false claim in its header only makes the cookie stricter."""
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    return "https" in (request.scope["scheme"], forwarded.lower())


def cookie_name(request: Request) -> str:
    """`__Host-`: browsers accept it only over TLS, and from no other host. Without TLS the name has
    the port, because browsers give a cookie to all ports of a host."""
    if is_encrypted(request):
        return "__Host-freehold"
    port = request.headers.get("host", "").rpartition(":")[2]
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5
    return f"freehold-{port}" if is_port else "freehold"


def sign_in_cookie_name(request: Request) -> str:
    """The form of the sign-in has a cookie of its own: a page that everyone can open, also from
    another site, must not replace that of a session."""
    return f"{cookie_name(request)}-sign-in"


def set_cookie(request: Request, response: Response, name: str, cookie: str) -> None:
    """Lax: a link in a mail or a chat opens the page that it names. What changes something is a
    POST, for which browsers send the cookie from this site only; see also `check_form`."""
    response.set_cookie(
        name,
        cookie,
        max_age=int(LIFETIME_SECONDS),
        path="/",
        secure=is_encrypted(request),
        httponly=True,
        samesite="lax",
    )


# -- requests that change something ----------------------------------------------------------


def check_form(request: Request, visitor: Visitor, token: str) -> None:
    """Raises unless the form was sent by a page of this dashboard."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    host = request.headers.get("host")
    if site not in (None, "same-origin") or (origin is not None and _netloc(origin) != host):
        raise ApiError(403, "Forbidden", "forms of other sites are not accepted")
    if visitor.is_new or not hmac.compare_digest(token.encode(), visitor.form_token.encode()):
        raise ApiError(
            403, "Forbidden", "this form is out of date: go back, reload the page, and try again"
        )


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
