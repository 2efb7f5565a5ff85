"""Lanes: how deep, who is at the head, what blocks them; and their pause."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leasehold.access import Role
from leasehold.http.asked import Asked
from leasehold.http.routes import Routes
from leasehold.http.shapes import LanesListed, Nothing, Pause, TargetPath, given
from leasehold.store.contract import DEPTH_BOUND, Lane

routes = Routes()


class LaneList(msgspec.Struct, frozen=True):
    """Lanes by target. ``next``: where the next page begins, null after the last."""

    now: datetime
    bound: int
    lanes: list[Lane]
    next: str | None


class LaneAnswer(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    target: str
    what: str


@routes.get("/api/lanes", Role.VIEWER, query=LanesListed, answers={200: LaneList})
async def list_lanes(asked: Asked) -> LaneList:
    """Lanes that have jobs or are paused: depth, head, since when, and why it does not go on."""
    query: LanesListed = asked.query
    lanes = await asked.operate.lanes(given(query.after) or "", query.limit)
    more = lanes[-1].target if len(lanes) == query.limit else None
    return LaneList(await asked.operate.now(), DEPTH_BOUND, lanes, more)


@routes.post("/api/lanes/{target}/pause", Role.OPERATOR, path=TargetPath, body=Pause,
             answers={200: LaneAnswer})  # fmt: skip
async def pause_lane(asked: Asked) -> LaneAnswer:
    """Nothing of the lane starts until it is resumed, or until a time. What runs goes on."""
    body: Pause = asked.body
    target: str = asked.path.target
    await asked.operate.pause_lane(target, asked.by, body.reason, body.until)
    return LaneAnswer(target, "done")


@routes.post("/api/lanes/{target}/resume", Role.OPERATOR, path=TargetPath, body=Nothing,
             answers={200: LaneAnswer})  # fmt: skip
async def resume_lane(asked: Asked) -> LaneAnswer:
    """Let a paused lane go on."""
    target: str = asked.path.target
    was_paused = await asked.operate.resume_lane(target)
    return LaneAnswer(target, "done" if was_paused else "already")
