"""The system: versions, retention, settings with their origin, and open sessions."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.http.auth import TenantScope
from freehold.http.routes import Routes
from freehold.http_auth import Role, shown_token
from freehold.settings import SETTING_TYPES, Settings

routes = Routes()
#: Settings that can contain a password.
_HIDDEN = ("store.url",)


class EndSessionForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


@routes.get("/system", Role.ADMIN, scope=TenantScope.ALL, responses={200: str})
async def system_page(request: PageRequest) -> Page:
    """What runs here, and with which settings."""
    store = request.service.app._client.awaited
    return Page(
        template="system.html",
        title="System",
        section="System",
        values={
            "now": await request.operator.now(),
            "settings": _settings(request.http.state.board.settings),
            "rules": await request.operator.retention_rules(),
            "sessions": await store.web_sessions(),
            "streams": request.service.streams.count,
            "limits": request.service.limits,
            "workers": await request.operator.workers(),
        },
        command="freehold config; freehold doctor",
    )


def _settings(settings: Settings) -> list[tuple[str, Any, str]]:
    found = []
    for name in SETTING_TYPES:
        value = attrgetter(name)(settings)
        if name == "http.tokens":
            value = ", ".join(shown_token(text) for text in value) or "one in a private file"
        elif name in _HIDDEN:
            value = "…" if value else None
        found.append((name, value, settings.origins[name]))
    return found


@routes.post(
    "/system/sessions/end",
    Role.ADMIN,
    scope=TenantScope.ALL,
    body=EndSessionForm,
    responses={303: str},
)
async def end_session(request: PageRequest) -> Redirect:
    """The browser of that session must sign in again."""
    await request.service.app._client.awaited.close_web_sessions(request.body.digest)
    return Redirect(request.url("system"), "The session is ended.")
