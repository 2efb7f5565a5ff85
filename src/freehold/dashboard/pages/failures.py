"""Failures: jobs that failed in the same way, together."""

from __future__ import annotations

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role

routes = Routes()


@routes.get("/failures", Role.VIEWER, responses={200: str})
async def failure_list(request: PageRequest) -> Page:
    """The newest unsuccessful jobs by task, error and message, the largest group first."""
    found = await request.shared("failures", request.operator.failures)
    return Page(
        template="failures.html",
        title="Failures",
        section="Failures",
        values={"failures": found, "ticks_limit": 200},
        command=request.command_line("failures"),
        topics=("events",),
    )
