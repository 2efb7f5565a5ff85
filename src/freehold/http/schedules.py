"""Schedules: list, put, pause, run, backfill, drop."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from freehold.errors import BadInput
from freehold.http.jobs import EnqueuedBody, new_job
from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    BackfillBody,
    NextRunsQuery,
    PauseBody,
    ScheduleBody,
    ScheduleListQuery,
    SchedulePath,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.model.operator_actions import ActionStatus
from freehold.model.timing import Cron, Every, Timing
from freehold.operator_schedules import NEXT_RUNS_LIMIT, ScheduleInfo
from freehold.tasks import with_secrets

routes = Routes()


class ScheduleListBody(msgspec.Struct, frozen=True):
    """Schedules by name. ``next`` is the ``after`` of the next page, null after the last."""

    now: datetime
    schedules: list[ScheduleInfo]
    next: str | None


class NextRunsBody(msgspec.Struct, frozen=True):
    name: str
    next: Annotated[list[datetime], Meta(max_length=NEXT_RUNS_LIMIT)]


class ScheduleActionBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    name: str
    status: ActionStatus


class BackfilledBody(msgspec.Struct, frozen=True):
    """How many ticks there were, and the jobs that were made for them now."""

    name: str
    ticks: int
    jobs: list[int]


@routes.get(
    "/api/schedules", Role.VIEWER, query=ScheduleListQuery, responses={200: ScheduleListBody}
)
async def list_schedules(request: ApiRequest) -> ScheduleListBody:
    """List schedules with their next and last tick; one that skips names the job it waits for."""
    query: ScheduleListQuery = request.query
    operator = request.operator
    found = await operator.schedules(value_or_none(query.after) or "", query.limit)
    more = found[-1].name if len(found) == query.limit else None
    return ScheduleListBody(await operator.now(), found, more)


@routes.get("/api/schedules/{name}", Role.VIEWER, path=SchedulePath, responses={200: ScheduleInfo})
async def show_schedule(request: ApiRequest) -> ScheduleInfo:
    """Show a schedule."""
    return await request.operator.schedule(request.path.name)


@routes.get(
    "/api/schedules/{name}/next",
    Role.VIEWER,
    path=SchedulePath,
    query=NextRunsQuery,
    responses={200: NextRunsBody},
)
async def next_runs(request: ApiRequest) -> NextRunsBody:
    """Show the next ticks of a schedule."""
    name: str = request.path.name
    return NextRunsBody(name, await request.operator.next_runs(name, request.query.count))


@routes.post(
    "/api/schedules/{name}",
    Role.OPERATOR,
    path=SchedulePath,
    body=ScheduleBody,
    responses={200: ScheduleInfo},
)
async def put_schedule(request: ApiRequest) -> ScheduleInfo:
    """Store a schedule, or replace the one of this name. It fires at its next tick."""
    body: ScheduleBody = request.body
    job = with_secrets(new_job(request.app.tasks, body.job), body.job.secret_args)
    return await request.operator.put_schedule(
        request.path.name,
        _timing(body),
        job,
        by=request.by,
        overlap=body.overlap,
        catch_up=body.catch_up,
        within=body.within_seconds,
        jitter=body.jitter_seconds,
        ends_at=body.ends_at,
        reason=body.reason,
    )


def _timing(body: ScheduleBody) -> Timing:
    if (body.cron is None) == (body.every_seconds is None):
        raise BadInput("give cron or every_seconds, one of them")
    if body.cron is not None:
        return Cron(body.cron, body.zone)
    assert body.every_seconds is not None
    return Every(seconds=body.every_seconds)


@routes.post(
    "/api/schedules/{name}/pause",
    Role.OPERATOR,
    path=SchedulePath,
    body=PauseBody,
    responses={200: ScheduleActionBody},
)
async def pause_schedule(request: ApiRequest) -> ScheduleActionBody:
    """Pause a schedule, until a time or until it is resumed. Ticks of the pause make no jobs."""
    body: PauseBody = request.body
    name: str = request.path.name
    await request.operator.pause_schedule(name, by=request.by, reason=body.reason, until=body.until)
    return ScheduleActionBody(name, ActionStatus.DONE)


@routes.post(
    "/api/schedules/{name}/resume",
    Role.OPERATOR,
    path=SchedulePath,
    body=ActionBody,
    responses={200: ScheduleActionBody},
)
async def resume_schedule(request: ApiRequest) -> ScheduleActionBody:
    """Resume a paused schedule. It fires at its next tick."""
    name: str = request.path.name
    was_paused = await request.operator.resume_schedule(
        name, by=request.by, reason=request.body.reason
    )
    return ScheduleActionBody(name, ActionStatus.DONE if was_paused else ActionStatus.ALREADY)


@routes.post(
    "/api/schedules/{name}/run",
    Role.OPERATOR,
    path=SchedulePath,
    body=ActionBody,
    responses={200: EnqueuedBody, 201: EnqueuedBody},
)
async def run_schedule(request: ApiRequest) -> ApiResponse:
    """Make a job of the schedule now, also while it is paused. 200: the job before is still live,
    and none was made."""
    name: str = request.path.name
    info = await request.operator.schedule(name)
    made = await request.operator.run_schedule(name, by=request.by, reason=request.body.reason)
    body = EnqueuedBody(made.id, info.task, made.created, made.replaced, made.created_at)
    return ApiResponse(201 if made.created else 200, body)


@routes.post(
    "/api/schedules/{name}/backfill",
    Role.OPERATOR,
    path=SchedulePath,
    body=BackfillBody,
    responses={200: BackfilledBody},
)
async def backfill_schedule(request: ApiRequest) -> BackfilledBody:
    """Make a job for each tick in a past time. Repeated within a day, it makes none again."""
    body: BackfillBody = request.body
    name: str = request.path.name
    made = await request.operator.backfill_schedule(
        name, body.since, body.until, by=request.by, reason=body.reason
    )
    return BackfilledBody(name, len(made), [each.id for each in made if each.created])


@routes.post(
    "/api/schedules/{name}/reset",
    Role.OPERATOR,
    path=SchedulePath,
    body=ActionBody,
    responses={200: ScheduleInfo},
)
async def reset_schedule(request: ApiRequest) -> ScheduleInfo:
    """Undo the edits of a schedule: back to what its app declares."""
    name, reason = request.path.name, request.body.reason
    return await request.operator.reset_schedule(name, by=request.by, reason=reason)


@routes.post(
    "/api/schedules/{name}/drop",
    Role.OPERATOR,
    path=SchedulePath,
    body=ActionBody,
    responses={200: ScheduleActionBody},
)
async def drop_schedule(request: ApiRequest) -> ScheduleActionBody:
    """Drop a schedule. Its jobs stay; a worker whose code declares it brings it back."""
    name: str = request.path.name
    await request.operator.drop_schedule(name, by=request.by, reason=request.body.reason)
    return ScheduleActionBody(name, ActionStatus.DONE)
