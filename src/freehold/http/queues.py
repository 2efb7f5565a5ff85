"""Queues, and counts of live jobs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import EmptyBody, PauseBody, QueuePath
from freehold.http_auth import Role
from freehold.model.operator_actions import ActionStatus
from freehold.store.types import DEPTH_BOUND, JobCounts, QueueInfo

routes = Routes()


class QueueListBody(msgspec.Struct, frozen=True):
    """Queues that have jobs or settings. Numbers are counted up to ``bound``."""

    now: datetime
    bound: int
    queues: list[QueueInfo]


class QueueBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    name: str
    status: ActionStatus


class StatsBody(msgspec.Struct, frozen=True):
    """Counts of live jobs by what they wait for, each up to ``bound``."""

    now: datetime
    bound: int
    counts: JobCounts


@routes.get("/api/queues", Role.VIEWER, responses={200: QueueListBody})
async def list_queues(request: ApiRequest) -> QueueListBody:
    """List queues with their ready and leased jobs, the age of the oldest one, and pauses."""
    operator = request.operator
    return QueueListBody(await operator.now(), DEPTH_BOUND, await operator.queues())


@routes.post(
    "/api/queues/{name}/pause",
    Role.OPERATOR,
    path=QueuePath,
    body=PauseBody,
    responses={200: QueueBody},
)
async def pause_queue(request: ApiRequest) -> QueueBody:
    """Pause a queue, until a time or until it is resumed. Its jobs are not claimed; running jobs
    continue."""
    body: PauseBody = request.body
    name: str = request.path.name
    await request.operator.pause_queue(name, request.by, body.reason, body.until)
    return QueueBody(name, ActionStatus.DONE)


@routes.post(
    "/api/queues/{name}/resume",
    Role.OPERATOR,
    path=QueuePath,
    body=EmptyBody,
    responses={200: QueueBody},
)
async def resume_queue(request: ApiRequest) -> QueueBody:
    """Resume a paused queue."""
    name: str = request.path.name
    was_paused = await request.operator.resume_queue(name)
    return QueueBody(name, ActionStatus.DONE if was_paused else ActionStatus.ALREADY)


@routes.get("/api/stats", Role.VIEWER, responses={200: StatsBody})
async def show_stats(request: ApiRequest) -> StatsBody:
    """Count live jobs by what they wait for."""
    operator = request.operator
    return StatsBody(await operator.now(), DEPTH_BOUND, await operator.counts())
