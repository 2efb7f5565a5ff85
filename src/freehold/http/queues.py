"""Queues, and counts of live jobs."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    PauseBody,
    QueueListQuery,
    QueuePath,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.model.explain import PauseInfo
from freehold.model.operator_actions import ActionStatus
from freehold.store.types import DEPTH_BOUND, QUEUE_LIST_BOUND, JobCounts, QueueInfo

routes = Routes()


class QueueListBody(msgspec.Struct, frozen=True):
    """Queues that have live jobs or settings, by name. Numbers are counted up to ``bound``.
    ``pause`` is that of all queues together, or of the tenant. ``next`` is the ``after`` of the
    next page, null after the last."""

    now: datetime
    bound: int
    queues: list[QueueInfo]
    pause: PauseInfo | None
    next: str | None


class QueueDetailBody(msgspec.Struct, frozen=True):
    """``queue`` is null if it has neither live jobs nor settings."""

    now: datetime
    queue: QueueInfo | None


class QueueBody(msgspec.Struct, frozen=True):
    """``status``: done, or already so."""

    name: str
    status: ActionStatus


class StatsBody(msgspec.Struct, frozen=True):
    """Counts of live jobs by what they wait for, each up to ``bound``."""

    now: datetime
    bound: int
    counts: JobCounts


@routes.get("/api/queues", Role.VIEWER, query=QueueListQuery, responses={200: QueueListBody})
async def list_queues(request: ApiRequest) -> QueueListBody:
    """List queues with their live jobs, the age of the oldest ready one, and pauses; in pages."""
    query: QueueListQuery = request.query
    operator = request.operator
    now, queues = await operator.now(), await operator.queues()
    # Sorted here: the order of names in a database depends on its locale.
    after = value_or_none(query.after) or ""
    rest = sorted((each for each in queues if each.name > after), key=lambda each: each.name)
    page = rest[: query.limit]
    more = page[-1].name if len(rest) > query.limit else None
    return QueueListBody(now, QUEUE_LIST_BOUND, page, await operator.pause_of_all(), more)


@routes.get("/api/queues/{name}", Role.VIEWER, path=QueuePath, responses={200: QueueDetailBody})
async def show_queue(request: ApiRequest) -> QueueDetailBody:
    """Show a queue. Its jobs are counted further than in the list."""
    operator = request.operator
    return QueueDetailBody(await operator.now(), await operator.queue(request.path.name))


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
    body=ActionBody,
    responses={200: QueueBody},
)
async def resume_queue(request: ApiRequest) -> QueueBody:
    """Resume a paused queue."""
    name: str = request.path.name
    was_paused = await request.operator.resume_queue(name, request.by, request.body.reason)
    return QueueBody(name, ActionStatus.DONE if was_paused else ActionStatus.ALREADY)


@routes.get("/api/stats", Role.VIEWER, responses={200: StatsBody})
async def show_stats(request: ApiRequest) -> StatsBody:
    """Count live jobs by what they wait for."""
    operator = request.operator
    return StatsBody(await operator.now(), DEPTH_BOUND, await operator.counts())
