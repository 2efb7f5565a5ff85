"""Lanes: the list, and the page of one lane with its head and the jobs behind it."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from freehold.dashboard.forms import PauseForm, ReasonForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.dashboard.pages import pausing
from freehold.http.routes import Routes
from freehold.http.schemas import Key, TargetPath, value_or_none
from freehold.http_auth import Role

routes = Routes()
_SHOWN = 100


class LanePageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``after``: the last lane of the page before."""

    after: Key | UnsetType = UNSET


@routes.get("/lanes", Role.VIEWER, query=LanePageQuery, responses={200: str})
async def lane_list(request: PageRequest) -> Page:
    """Lanes that have jobs or are paused: depth, head, and what blocks them."""
    after = value_or_none(request.query.after) or ""
    lanes = await request.operator.lanes(after, _SHOWN)
    return Page(
        template="lanes.html",
        title="Lanes",
        section="Lanes",
        values={
            "lanes": lanes,
            "after": after,
            "next": lanes[-1].target if len(lanes) == _SHOWN else None,
        },
        command=request.command_line("lanes"),
        topics=("lanes",),
    )


@routes.get("/lanes/{target}", Role.VIEWER, path=TargetPath, responses={200: str})
async def lane_page(request: PageRequest) -> Page:
    """One lane: its head, why it stands, and the jobs behind it."""
    target: str = request.path.target
    operator = request.operator
    lane = await operator.lane(target)
    holder = None if lane is None else lane.head
    jobs = await operator.lane_jobs(target, None, _SHOWN)
    causes = []
    if holder is not None:
        causes = await operator.explain(holder, seen_by=request.tenant)
    return Page(
        template="lane.html",
        title=f"Lane {target}",
        section="Lanes",
        values={
            "target": target,
            "lane": lane,
            "head": next((job for job in jobs if job.id == holder), None),
            "jobs": [job for job in jobs if job.id != holder],
            "causes": causes,
        },
        command=request.command_line("lanes", "show", target),
        topics=("lanes", "jobs"),
    )


@routes.post(
    "/lane/pause/{target}", Role.OPERATOR, path=TargetPath, body=PauseForm, responses={303: str}
)
async def pause_lane(request: PageRequest) -> Redirect:
    """No job of the lane starts; its running job goes on."""
    return await pausing.pause(request, request.operator.pause_lane, "lane", request.path.target)


@routes.post(
    "/lane/resume/{target}", Role.OPERATOR, path=TargetPath, body=ReasonForm, responses={303: str}
)
async def resume_lane(request: PageRequest) -> Redirect:
    return await pausing.resume(request, request.operator.resume_lane, "lane", request.path.target)
