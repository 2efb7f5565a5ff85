"""Sign-in with a token, or by the address that `freehold up` prints; sign-out."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match

from freehold.clock import system_micros
from freehold.dashboard import visitor as visitors
from freehold.dashboard.dispatch import Board
from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.problems import ApiError
from freehold.http.routes import Routes
from freehold.http.schemas import By
from freehold.http_auth import Role, Token, caller_of, is_sign_in_code

routes = Routes()
Text = Annotated[str, Meta(max_length=2000)]


class SignInQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``next``: the page to open afterwards. ``code``: of the printed address."""

    next: Text = "/"
    code: Text = ""


class SignInForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: Text = ""
    name: By | None = None
    next: Text = "/"


@routes.get("/login", Role.ANYONE, query=SignInQuery, responses={200: str})
async def sign_in_page(request: PageRequest) -> Page | Response:
    """The sign-in page. An address with a valid code signs in at once."""
    board, query = _board(request), request.query
    if board.identify is not None or not board.service.tokens:
        return RedirectResponse(f"{request.root}/", 303)
    if not query.code:
        return _page(request, query.next, None)
    now = system_micros() / 1_000_000
    if board.secret is not None and is_sign_in_code(query.code, board.secret, now):
        if board.used_codes.add(query.code):
            return await _signed_in(request, board.service.tokens[0], None, "/")
        if await _has_session(request):
            return RedirectResponse(f"{_root(request)}/", 303)
    return _page(request, query.next, "this address is no longer valid")


@routes.post("/login", Role.ANYONE, body=SignInForm, responses={200: str})
async def sign_in(request: PageRequest) -> Page | Response:
    """Opens a session."""
    board, form = _board(request), request.body
    if not board.service.tokens:
        raise ApiError(404, "Not found", "there is nothing to sign in to: no tokens are needed")
    caller = caller_of(f"Bearer {form.token}", board.service.tokens)
    if caller is None or not caller.token:
        # Only failures are refused: others behind the same address can sign in.
        board.limit.check(_address(request))
        board.limit.add_failure(_address(request))
        return _page(request, form.next, "this token is not known here", 401)
    token = board.service.tokens[caller.token - 1]
    return await _signed_in(request, token, form.name, form.next)


@routes.post("/logout", Role.VIEWER, responses={303: str})
async def sign_out(request: PageRequest) -> Response:
    """Ends the session."""
    await visitors.sign_out(request.service, request.http.state.visitor.cookie)
    response = RedirectResponse(f"{_root(request)}/login", 303)
    response.delete_cookie(visitors.cookie_name(request.http), path="/")
    return response


def _page(request: PageRequest, back: str, problem: str | None, status: int = 200) -> Page:
    values = {
        "next": back,
        "problem": problem,
        "is_encrypted": visitors.is_encrypted(request.http),
        "has_local_token": _board(request).secret is not None,
    }
    return Page(template="sign_in.html", title="Sign in", section="", values=values, status=status)


async def _signed_in(request: PageRequest, token: Token, name: str | None, back: str) -> Response:
    cookie = await visitors.sign_in(request.service, token, name)
    path = back if _is_page(request.http, back) else "/"
    response = RedirectResponse(_root(request) + path, 303)
    visitors.set_cookie(request.http, response, visitors.cookie_name(request.http), cookie)
    return response


async def _has_session(request: PageRequest) -> bool:
    try:
        await visitors.visitor_of(request.http, Role.VIEWER, request.service, None)
    except visitors.NotSignedIn:
        return False
    return True


def _is_page(request: Request, back: str) -> bool:
    """Only a path of the route table, so that the address cannot lead to another site."""
    if not re.fullmatch(r"/(?!/)[^\\\s]*", back):
        return False
    path = URL(back).path
    scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
    found = [route.matches(scope)[0] for route in request.app.routes]
    return Match.FULL in found


def _board(request: PageRequest) -> Board:
    board: Board = request.http.state.board
    return board


def _root(request: PageRequest) -> str:
    root: str = request.http.scope.get("root_path", "")
    return root


def _address(request: PageRequest) -> str:
    return request.http.client.host if request.http.client is not None else ""
