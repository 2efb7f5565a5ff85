"""Workers that were heard lately."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.model.worker_info import LiveWorker

routes = Routes()


class WorkerListBody(msgspec.Struct, frozen=True):
    """Workers whose word still counts."""

    now: datetime
    workers: list[LiveWorker]


@routes.get("/api/workers", Role.VIEWER, answers={200: WorkerListBody})
async def list_workers(asked: ApiRequest) -> WorkerListBody:
    """Who works: where, on which queues, with how many slots in use."""
    return WorkerListBody(await asked.operate.now(), await asked.operate.workers())
