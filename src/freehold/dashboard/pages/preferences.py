"""What a visitor chooses about the pages: light, dark, or as the system has it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.responses import RedirectResponse, Response

from freehold.dashboard.page_request import PageRequest
from freehold.dashboard.rendering import THEME_COOKIE
from freehold.http.routes import Routes
from freehold.http_auth import Role

routes = Routes()
_YEAR_SECONDS = 365 * 86400


class ThemeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    theme: Literal["system", "light", "dark"]
    back: Annotated[str, Meta(max_length=2000)] = "/"


@routes.post("/theme", Role.VIEWER, body=ThemeForm, responses={303: str})
async def set_theme(request: PageRequest) -> Response:
    """Keeps the theme in a cookie, so that the first painting has it."""
    back, root = request.body.back, request.root
    is_ours = re.fullmatch(r"/(?!/)[^\\\s]*", back) and back.startswith(f"{root}/")
    response = RedirectResponse(back if is_ours else f"{root}/", 303)
    response.set_cookie(
        THEME_COOKIE,
        request.body.theme,
        max_age=_YEAR_SECONDS,
        path="/",
        httponly=True,
        samesite="lax",
    )
    return response
