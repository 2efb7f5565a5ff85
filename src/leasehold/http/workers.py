"""Workers that were heard lately."""

from __future__ import annotations

from datetime import datetime

import msgspec

from leasehold.access import Role
from leasehold.http.asked import Asked
from leasehold.http.routes import Routes
from leasehold.model.registry import LiveWorker

routes = Routes()


class WorkerList(msgspec.Struct, frozen=True):
    """Workers whose word still counts."""

    now: datetime
    workers: list[LiveWorker]


@routes.get("/api/workers", Role.VIEWER, answers={200: WorkerList})
async def list_workers(asked: Asked) -> WorkerList:
    """Who works: where, on which queues, with how many slots in use."""
    return WorkerList(await asked.operate.now(), await asked.operate.workers())
