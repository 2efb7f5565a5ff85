"""Lanes: how deep, who is at the head, what blocks them; and their pause."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import EmptyBody, LaneListQuery, PauseBody, TargetPath, given
from freehold.http_auth import Role
from freehold.store.types import DEPTH_BOUND, LaneInfo

routes = Routes()


class LaneListBody(msgspec.Struct, frozen=True):
    """Lanes by target. ``next``: where the next page begins, null after the last."""

    now: datetime
    bound: int
    lanes: list[LaneInfo]
    next: str | None


class LaneBody(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    target: str
    what: str


@routes.get("/api/lanes", Role.VIEWER, query=LaneListQuery, answers={200: LaneListBody})
async def list_lanes(asked: ApiRequest) -> LaneListBody:
    """Lanes that have jobs or are paused: depth, head, since when, and why it does not go on."""
    query: LaneListQuery = asked.query
    lanes = await asked.operate.lanes(given(query.after) or "", query.limit)
    more = lanes[-1].target if len(lanes) == query.limit else None
    return LaneListBody(await asked.operate.now(), DEPTH_BOUND, lanes, more)


@routes.post(
    "/api/lanes/{target}/pause",
    Role.OPERATOR,
    path=TargetPath,
    body=PauseBody,
    answers={200: LaneBody},
)
async def pause_lane(asked: ApiRequest) -> LaneBody:
    """Nothing of the lane starts until it is resumed, or until a time. What runs goes on."""
    body: PauseBody = asked.body
    target: str = asked.path.target
    await asked.operate.pause_lane(target, asked.by, body.reason, body.until)
    return LaneBody(target, "done")


@routes.post(
    "/api/lanes/{target}/resume",
    Role.OPERATOR,
    path=TargetPath,
    body=EmptyBody,
    answers={200: LaneBody},
)
async def resume_lane(asked: ApiRequest) -> LaneBody:
    """Let a paused lane go on."""
    target: str = asked.path.target
    was_paused = await asked.operate.resume_lane(target)
    return LaneBody(target, "done" if was_paused else "already")
