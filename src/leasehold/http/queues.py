"""Queues and numbers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leasehold.access import Role
from leasehold.http.asked import Asked
from leasehold.http.routes import Routes
from leasehold.http.shapes import Nothing, Pause, QueuePath
from leasehold.store.contract import DEPTH_BOUND, Counts, Queue

routes = Routes()


class QueueList(msgspec.Struct, frozen=True):
    """Queues that have jobs or settings. Numbers are counted up to ``bound``."""

    now: datetime
    bound: int
    queues: list[Queue]


class QueueAnswer(msgspec.Struct, frozen=True):
    """``what``: done, or already so."""

    name: str
    what: str


class Stats(msgspec.Struct, frozen=True):
    """Live jobs by what they wait for, each counted up to ``bound``."""

    now: datetime
    bound: int
    counts: Counts


@routes.get("/api/queues", Role.VIEWER, answers={200: QueueList})
async def list_queues(asked: Asked) -> QueueList:
    """Queues: what can be claimed, what is leased, since when, and what is paused."""
    operate = asked.operate
    return QueueList(await operate.now(), DEPTH_BOUND, await operate.queues())


@routes.post(
    "/api/queues/{name}/pause",
    Role.OPERATOR,
    path=QueuePath,
    body=Pause,
    answers={200: QueueAnswer},
)
async def pause_queue(asked: Asked) -> QueueAnswer:
    """Nothing of the queue is claimed until it is resumed, or until a time. What runs goes on."""
    body: Pause = asked.body
    name: str = asked.path.name
    await asked.operate.pause_queue(name, asked.by, body.reason, body.until)
    return QueueAnswer(name, "done")


@routes.post(
    "/api/queues/{name}/resume",
    Role.OPERATOR,
    path=QueuePath,
    body=Nothing,
    answers={200: QueueAnswer},
)
async def resume_queue(asked: Asked) -> QueueAnswer:
    """Let a paused queue go on."""
    name: str = asked.path.name
    was_paused = await asked.operate.resume_queue(name)
    return QueueAnswer(name, "done" if was_paused else "already")


@routes.get("/api/stats", Role.VIEWER, answers={200: Stats})
async def show_stats(asked: Asked) -> Stats:
    """How many live jobs wait for what."""
    operate = asked.operate
    return Stats(await operate.now(), DEPTH_BOUND, await operate.counts())
