"""The dashboard as pages of a Django project, for its staff.

    urlpatterns = [path("queue/", dashboard_urls())]

A member of the staff with the permission ``freehold.view_queuejob`` is a viewer, with
``freehold.change_queuejob`` an operator, as in the admin; a superuser is an admin. Other visitors
are sent to the sign-in of Django's admin, or to LOGIN_URL. Pages change by themselves where Django
runs by ASGI; under WSGI they look again every five seconds.
"""

from __future__ import annotations

import re
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, re_path, reverse
from django.views.decorators.csrf import csrf_exempt

from freehold.app import Freehold
from freehold.contrib.django.asgi_bridge import Bridge, LoopThread, can_stream
from freehold.contrib.django.backend import backend_of
from freehold.contrib.django.compat import DEFAULT_TASK_BACKEND_ALIAS
from freehold.dashboard import dashboard
from freehold.http_auth import Caller, Role

#: In the scope of a request: its caller, as Django knows it.
_CALLER = "freehold.caller"
#: The paths of the stream of changes.
_STREAM = re.compile(r"(t/[^/]+/)?live")
_thread = LoopThread()


def dashboard_urls(backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> tuple[list[Any], str, str]:
    """The dashboard of one backend, for ``path("queue/", dashboard_urls())``."""
    view: Any = DashboardView(backend).respond
    return [re_path(r"^(?P<rest>.*)$", _prepared(view), name="dashboard")], "freehold", backend


def _prepared(view: Any) -> Any:
    """The dashboard checks its forms itself, and has connections of its own: Django allows no
    coroutine inside of ATOMIC_REQUESTS."""

    async def dashboard_view(request: HttpRequest, rest: str) -> HttpResponseBase:
        found: HttpResponseBase = await view(request, rest)
        return found

    for alias in settings.DATABASES:
        transaction.non_atomic_requests(alias)(dashboard_view)
    return csrf_exempt(dashboard_view)


class DashboardView:
    def __init__(self, alias: str) -> None:
        self._alias = alias
        #: The app may be another one after a change of the settings, in tests.
        self._served: tuple[Freehold, Bridge] | None = None

    async def respond(self, request: HttpRequest, rest: str) -> HttpResponseBase:
        # In the thread of Django's connection: sessions and permissions are in the database.
        caller = await sync_to_async(caller_of)(request)
        if caller is None:
            return _to_sign_in(request)
        if _STREAM.fullmatch(rest) and not can_stream(request):
            return HttpResponse(status=204)
        root = request.path.removesuffix(rest).rstrip("/")
        bridge = await sync_to_async(self._bridge)()
        return await bridge.respond(request, root, {_CALLER: caller})

    def _bridge(self) -> Bridge:
        app = backend_of(self._alias).app
        if self._served is None or self._served[0] is not app:
            site = dashboard(app, identify=_identify)
            # As Django closes its own connections: none stays open in a web process, or keeps a
            # test database from being dropped.
            bridge = Bridge(site, _thread, when_idle=lambda: app._client.database.aclose())
            self._served = app, bridge
        return self._served[1]


def _identify(request: Any) -> Caller:
    caller: Caller = request.scope[_CALLER]
    return caller


def caller_of(request: HttpRequest) -> Caller | None:
    """None: the request has no session of the staff. Raises PermissionDenied."""
    user: Any = getattr(request, "user", None)
    if user is None:
        raise ImproperlyConfigured(
            "the dashboard needs the user of a request: add "
            "django.contrib.auth.middleware.AuthenticationMiddleware to MIDDLEWARE"
        )
    if not (user.is_active and getattr(user, "is_staff", False)):
        return None
    if user.is_superuser:
        return Caller(user.get_username(), Role.ADMIN)
    if user.has_perm("freehold.change_queuejob"):
        return Caller(user.get_username(), Role.OPERATOR)
    if user.has_perm("freehold.view_queuejob"):
        return Caller(user.get_username(), Role.VIEWER)
    raise PermissionDenied


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    if request.headers.get("hx-request"):  # a part of a page: the browser loads the whole page
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    try:
        sign_in = reverse("admin:login")
    except NoReverseMatch:
        sign_in = str(settings.LOGIN_URL)
    back = request.get_full_path() if request.method == "GET" else request.path
    return redirect_to_login(back, sign_in)
