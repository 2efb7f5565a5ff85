"""The API and the dashboard in one application, as `freehold up` serves them."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from freehold.app import Freehold
from freehold.clock import system_micros
from freehold.dashboard.application import dashboard
from freehold.dashboard.pages.demo import DemoControls
from freehold.http.asgi import api
from freehold.http.request import ApiService
from freehold.http_auth import local_token, sign_in_code
from freehold.settings import Settings
from freehold.telemetry import Telemetry

PATH = "/ui"
#: How long the printed address signs in.
CODE_SECONDS = 15 * 60


class Site:
    """The dashboard at `/ui/`, to which `/` leads browsers; everything else is the API."""

    def __init__(
        self,
        app: Freehold,
        settings: Settings,
        telemetry: Telemetry | None = None,
        demo_controls: DemoControls | None = None,
    ) -> None:
        self._api = api(app, settings, telemetry=telemetry)
        self.service: ApiService = self._api.state.service
        pages = dashboard(app, settings, service=self.service, demo_controls=demo_controls)
        self._pages = Starlette(routes=[Mount(PATH, pages)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and (path == PATH or _is_home(scope, path)):
            response = RedirectResponse(f"{scope.get('root_path', '')}{PATH}/", 307)
            await response(scope, receive, send)
        else:
            chosen = self._pages if path.startswith(f"{PATH}/") else self._api
            await chosen(scope, receive, send)


def _is_home(scope: Scope, path: str) -> bool:
    return path == "/" and "text/html" in Headers(scope=scope).get("accept", "")


def dashboard_address(address: str, settings: Settings) -> str:
    """Where to open the dashboard. Without configured tokens the address has a code that signs in
    as the user of this machine, for a while."""
    if settings.http.tokens:
        return f"{address}{PATH}/"
    ends_at = system_micros() // 1_000_000 + CODE_SECONDS
    code = sign_in_code(local_token().read_text("ascii").strip(), ends_at)
    return f"{address}{PATH}/login?code={code}"
