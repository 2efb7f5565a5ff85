"""From a request of a browser to its response: visitor, role, form, handler, template.

The rules of the API hold: `authorize` decides by the role and the tenant of the route. Errors are
pages with the status of the API's problem and its sentence.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from math import ceil
from typing import Any, get_origin
from urllib.parse import parse_qsl, quote, unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.dashboard.pages.demo import DemoControls
from freehold.dashboard.rendering import address_of, rendered
from freehold.dashboard.sign_in_limit import SignInLimit, UsedCodes
from freehold.dashboard.visitor import (
    NotSignedIn,
    Visitor,
    check_form,
    set_cookie,
    visitor_of,
)
from freehold.dashboard.watcher import Watcher
from freehold.errors import OutcomeUnknown, StoreUnavailable, TenantNotFound
from freehold.http.auth import Identify, authorize
from freehold.http.dispatch import converted, query_of, read_body
from freehold.http.problems import ApiError, Problem, hidden_detail, problem_of
from freehold.http.request import ApiService
from freehold.http.routes import Route
from freehold.http_auth import Caller, Role
from freehold.settings import Settings

FORM = "application/x-www-form-urlencoded"
#: A page ticks at most this many jobs, and has a few other fields.
_FIELDS_LIMIT = 400
#: A page that could not be read is loaded again after this time.
_REFRESH_SECONDS = 10
#: The sentence about the last action, shown once.
_DONE = "freehold-done"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard. ``secret``: the token that signs codes of sign-in addresses, if there is
    one."""

    service: ApiService
    settings: Settings
    identify: Identify | None
    limit: SignInLimit
    used_codes: UsedCodes
    secret: str | None
    #: By tenant; None is the store of the service.
    watchers: dict[str | None, Watcher]
    demo: DemoControls | None = None


async def dispatch(board: Board, route: Route, request: Request) -> Response:
    """Returns a response in every case."""
    visitor = None
    try:
        visitor = await visitor_of(request, route.role, board.service, board.identify)
        response = await _respond(board, route, request, visitor)
    except NotSignedIn:
        response = _to_sign_in(request)
    except ClientDisconnect:
        response = Response(status_code=400)
    except Exception as error:
        response = _error_page(board, request, visitor, error)
    board.service.access_log.add(
        request, None if visitor is None else visitor.caller, response.status_code
    )
    if visitor is not None and visitor.is_new and response.media_type == "text/html":
        set_cookie(request, response, visitor.cookie_name, visitor.cookie)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.update(HEADERS)
    return response


async def _respond(board: Board, route: Route, request: Request, visitor: Visitor) -> Response:
    params = dict(request.path_params)
    caller, root = _in_tenant(visitor.caller, params, request)
    authorize(request, caller, route.role, route.scope, board.service.tenant)
    if caller.tenant is not None and caller.tenant != visitor.caller.tenant:
        await board.service.app.tenants.aget(caller.tenant)  # one that the path names must exist
    body = await _form(board, route, request, visitor) if route.method == "POST" else None
    page_request = PageRequest(
        board.service,
        request,
        caller,
        converted(params, route.path),
        converted(_query(request, route), route.query),
        body,
        root,
        visitor.form_token,
    )
    request.state.board = board
    request.state.visitor = visitor
    if rest_seconds := page_request.rest_seconds:
        return Response(status_code=304, headers={"Retry-After": str(ceil(rest_seconds))})
    seconds = board.service.limits.request_seconds
    try:
        async with asyncio.timeout(seconds):
            found = await route.handler(page_request)
    except TimeoutError:
        raise _too_slow(route, seconds) from None
    if route.method == "POST" and (watcher := board.watchers.get(page_request.tenant)):
        watcher.refreshing.forget()  # open pages must not go back to what was before
    if isinstance(found, Response):
        return found
    if isinstance(found, Redirect):
        return _redirect(found)
    return _page(page_request, found)


def _in_tenant(caller: Caller, params: dict[str, Any], request: Request) -> tuple[Caller, str]:
    """Under `/t/NAME/` a caller of all tenants is a caller of that tenant, and of no other."""
    root = request.scope.get("root_path", "")
    tenant = params.pop("of_tenant", None)
    if tenant is None:
        return caller, root
    if caller.tenant not in (None, tenant):
        raise ApiError(403, "Forbidden", "this token is of another tenant")
    return caller._replace(tenant=tenant), f"{root}/t/{quote(tenant, safe='')}"


def _query(request: Request, route: Route) -> dict[str, Any]:
    """An empty field of a form is a missing one."""
    found = query_of(request, route.query)
    return {name: value for name, value in found.items() if value != ""}


async def _form(board: Board, route: Route, request: Request, visitor: Visitor) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise ApiError(415, "Unsupported media type", f"send Content-Type: {FORM}")
    data = await read_body(request, board.service.limits)
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=_FIELDS_LIMIT)
    except ValueError:
        raise ApiError(400, "Bad request", "this form cannot be read") from None
    token = next((value for name, value in pairs if name == "form_token"), "")
    check_form(request, visitor, request.headers.get("x-form-token", token))
    return converted(_fields(pairs, route.body), route.body)


def _fields(pairs: list[tuple[str, str]], kind: type | None) -> dict[str, Any]:
    """An empty field is a missing one. Browsers send line ends as CR LF."""
    lists = set()
    if kind is not None:
        fields = msgspec.structs.fields(kind)
        lists = {field.name for field in fields if get_origin(field.type) is tuple}
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name == "form_token" or value == "":
            continue
        text = value.replace("\r\n", "\n")
        if name in lists:
            found.setdefault(name, []).append(text)
        else:
            found[name] = text
    return found


def _redirect(found: Redirect) -> Response:
    response = RedirectResponse(found.to, 303)
    if found.done is not None:
        value = quote(found.done[:500])
        response.set_cookie(_DONE, value, max_age=30, path="/", httponly=True, samesite="strict")
    return response


def _page(request: PageRequest, page: Page) -> Response:
    """A page that is loaded again by htmx is sent without its frame, and not at all if nothing of
    it has changed."""
    is_part = _is_part(request.http)
    done = None if is_part else request.http.cookies.get(_DONE)
    text = rendered(request, page, is_part=is_part, done=unquote(done) if done else None)
    tag = hashlib.sha256(text.encode()).hexdigest()[:32]
    if is_part and request.http.headers.get("hx-ptag") == tag:
        return Response(status_code=304)
    response = HTMLResponse(text, page.status, headers={"HX-PTag": tag} if is_part else None)
    if done:
        response.delete_cookie(_DONE, path="/", httponly=True, samesite="strict")
    return response


def _is_part(request: Request) -> bool:
    return request.headers.get("hx-target") == "main#page"


def _to_sign_in(request: Request) -> Response:
    """Back to the page afterwards. A part of a page makes the browser load the whole page."""
    root = request.scope.get("root_path", "")
    here = address_of(request).removeprefix(quote(root))
    back = quote(here, safe="") if request.method == "GET" else ""
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers={"HX-Refresh": "true"})
    return RedirectResponse(f"{root}/login" + (f"?next={back}" if back else ""), 303)


def _too_slow(route: Route, seconds: float) -> Exception:
    if route.method == "GET":
        return StoreUnavailable(f"no result within {seconds:g} s: the store is slow, or away")
    return OutcomeUnknown(f"no result within {seconds:g} s: it may have happened or not; look")


def _error_page(
    board: Board, request: Request, visitor: Visitor | None, error: Exception
) -> Response:
    """A page that is loaded again gets the error in place of its content."""
    caller = None if visitor is None else visitor.caller
    of_tenant = board.service.tenant is not None or (caller is not None and caller.tenant)
    if of_tenant and hidden_detail(error) is not None:
        board.service.access_log.add_hidden_error(request, caller, error)
    problem, headers = problem_of(error, hide_details=bool(of_tenant))
    if isinstance(error, TenantNotFound):
        problem = Problem("", "Not found", 404, "there is no such tenant")
    known, root = _place_of_error(caller, request, error)
    is_part = _is_part(request)
    looks_again = problem.status == 503 and request.method == "GET" and not is_part
    shown = PageRequest(
        board.service,
        request,
        known,
        None,
        None,
        None,
        root,
        "" if visitor is None else visitor.form_token,
    )
    page = Page(
        template="error.html",
        title=problem.title,
        section="",
        values={"problem": problem, "looks_again": looks_again},
        status=problem.status,
    )
    text = rendered(shown, page, is_part=is_part)
    again = {"Refresh": str(_REFRESH_SECONDS)} if looks_again else {}
    return HTMLResponse(text, problem.status, {**(headers or {}), **again})


def _place_of_error(
    caller: Caller | None, request: Request, error: Exception
) -> tuple[Caller, str]:
    """The links of an error under `/t/NAME/` stay in that tenant, if the caller may be there."""
    known, root = caller or Caller("anyone", Role.ANYONE), request.scope.get("root_path", "")
    if caller is None or isinstance(error, TenantNotFound):
        return known, root
    try:
        return _in_tenant(caller, dict(request.path_params), request)
    except ApiError:
        return known, root
