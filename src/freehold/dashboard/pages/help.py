"""Help: keys, search, roles, and what the words mean."""

from __future__ import annotations

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role

routes = Routes()


@routes.get("/help", Role.VIEWER, responses={200: str})
async def help_page(request: PageRequest) -> Page:
    """Keys, search and roles."""
    return Page(template="help.html", title="Help", section="", command="freehold --help")
