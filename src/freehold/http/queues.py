"""Queues and numbers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import EmptyBody, PauseBody, QueuePath
from freehold.http_auth import Role
from freehold.store.types import DEPTH_BOUND, JobCounts, QueueInfo

routes = Routes()


class QueueListBody(msgspec.Struct, frozen=True):
    """Queues that have jobs or settings. Numbers are counted up to ``bound``."""

    now: datetime
    bound: int
    queues: list[QueueInfo]


class QueueBody(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    name: str
    what: str


class StatsBody(msgspec.Struct, frozen=True):
    """Live jobs by what they wait for, each counted up to ``bound``."""

    now: datetime
    bound: int
    counts: JobCounts


@routes.get("/api/queues", Role.VIEWER, answers={200: QueueListBody})
async def list_queues(asked: ApiRequest) -> QueueListBody:
    """Queues: what can be claimed, what is leased, since when, and what is paused."""
    operate = asked.operate
    return QueueListBody(await operate.now(), DEPTH_BOUND, await operate.queues())


@routes.post(
    "/api/queues/{name}/pause",
    Role.OPERATOR,
    path=QueuePath,
    body=PauseBody,
    answers={200: QueueBody},
)
async def pause_queue(asked: ApiRequest) -> QueueBody:
    """Nothing of the queue is claimed until it is resumed, or until a time. What runs goes on."""
    body: PauseBody = asked.body
    name: str = asked.path.name
    await asked.operate.pause_queue(name, asked.by, body.reason, body.until)
    return QueueBody(name, "done")


@routes.post(
    "/api/queues/{name}/resume",
    Role.OPERATOR,
    path=QueuePath,
    body=EmptyBody,
    answers={200: QueueBody},
)
async def resume_queue(asked: ApiRequest) -> QueueBody:
    """Let a paused queue go on."""
    name: str = asked.path.name
    was_paused = await asked.operate.resume_queue(name)
    return QueueBody(name, "done" if was_paused else "already")


@routes.get("/api/stats", Role.VIEWER, answers={200: StatsBody})
async def show_stats(asked: ApiRequest) -> StatsBody:
    """How many live jobs wait for what."""
    operate = asked.operate
    return StatsBody(await operate.now(), DEPTH_BOUND, await operate.counts())
