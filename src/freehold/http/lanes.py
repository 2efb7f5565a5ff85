"""Lanes: their depth, head and pause, and what blocks them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    LaneJobsQuery,
    LaneListQuery,
    PauseBody,
    TargetPath,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.json_views import JobDocument, job_document
from freehold.model.operator_actions import ActionStatus
from freehold.store.types import LANE_LIST_BOUND, LaneInfo

routes = Routes()


class LaneListBody(msgspec.Struct, frozen=True):
    """Lanes by target. Depths are counted up to ``bound``. ``next``: where the next page begins,
    null after the last."""

    now: datetime
    bound: int
    lanes: list[LaneInfo]
    next: str | None


class LaneDetailBody(msgspec.Struct, frozen=True):
    """``lane`` is null if it has neither live jobs nor a pause."""

    now: datetime
    lane: LaneInfo | None


class LaneBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    target: str
    status: ActionStatus


@routes.get("/api/lanes", Role.VIEWER, query=LaneListQuery, responses={200: LaneListBody})
async def list_lanes(request: ApiRequest) -> LaneListBody:
    """List lanes that have jobs or are paused: depth, head, and what blocks them. A lane is the
    ordered sequence of the jobs with one target."""
    query: LaneListQuery = request.query
    lanes = await request.operator.lanes(value_or_none(query.after) or "", query.limit)
    more = lanes[-1].target if len(lanes) == query.limit else None
    return LaneListBody(await request.operator.now(), LANE_LIST_BOUND, lanes, more)


@routes.get("/api/lanes/{target}", Role.VIEWER, path=TargetPath, responses={200: LaneDetailBody})
async def show_lane(request: ApiRequest) -> LaneDetailBody:
    """Show a lane. Its jobs are counted further than in the list."""
    operator = request.operator
    return LaneDetailBody(await operator.now(), await operator.lane(request.path.target))


@routes.get(
    "/api/lane-jobs/{target}",
    Role.VIEWER,
    path=TargetPath,
    query=LaneJobsQuery,
    responses={200: list[JobDocument]},
)
async def list_lane_jobs(request: ApiRequest) -> list[JobDocument]:
    """List the holder of a lane, then the jobs that wait before and after the job `around`."""
    query: LaneJobsQuery = request.query
    around = value_or_none(query.around)
    found = await request.operator.lane_jobs(request.path.target, around, query.limit)
    return [job_document(job, show_args=False, show_trace=False) for job in found]


@routes.post(
    "/api/lanes/{target}/pause",
    Role.OPERATOR,
    path=TargetPath,
    body=PauseBody,
    responses={200: LaneBody},
)
async def pause_lane(request: ApiRequest) -> LaneBody:
    """Pause a lane, until a time or until it is resumed. Its running job continues."""
    body: PauseBody = request.body
    target: str = request.path.target
    await request.operator.pause_lane(target, request.by, body.reason, body.until)
    return LaneBody(target, ActionStatus.DONE)


@routes.post(
    "/api/lanes/{target}/resume",
    Role.OPERATOR,
    path=TargetPath,
    body=ActionBody,
    responses={200: LaneBody},
)
async def resume_lane(request: ApiRequest) -> LaneBody:
    """Resume a paused lane."""
    target: str = request.path.target
    was_paused = await request.operator.resume_lane(target, request.by, request.body.reason)
    return LaneBody(target, ActionStatus.DONE if was_paused else ActionStatus.ALREADY)
