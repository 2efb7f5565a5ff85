"""The button of the demo: it kills a worker process. Other dashboards have none."""

from __future__ import annotations

from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import PageRequest, Redirect
from freehold.http.problems import ApiError
from freehold.http.routes import Routes
from freehold.http_auth import Role

routes = Routes()


class DemoControls(Protocol):
    """What a visitor of the demo can do to its processes."""

    async def kill_worker(self, pid: int | None) -> str:
        """Kills this worker of the demo, or the busiest. Returns a sentence about it."""
        ...


class KillForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pid: Annotated[int, Meta(ge=1, le=2**31)] | None = None


def controls_of(request: PageRequest) -> DemoControls | None:
    board = getattr(request.http.state, "board", None)
    found: DemoControls | None = getattr(board, "demo", None)
    return found if request.may(Role.ADMIN) else None


@routes.post("/demo/kill", Role.ADMIN, body=KillForm, responses={303: str})
async def kill_worker(request: PageRequest) -> Redirect:
    """Kills a worker of the demo with SIGKILL."""
    controls = controls_of(request)
    if controls is None:
        raise ApiError(404, "Not found", "this is not the demo")
    return Redirect(request.url("workers"), await controls.kill_worker(request.body.pid))
