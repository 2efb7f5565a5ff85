"""Live workers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.model.worker_info import LiveWorker

routes = Routes()


class WorkerListBody(msgspec.Struct, frozen=True):
    """Workers with a recent heartbeat."""

    now: datetime
    workers: list[LiveWorker]


@routes.get("/api/workers", Role.VIEWER, responses={200: WorkerListBody})
async def list_workers(request: ApiRequest) -> WorkerListBody:
    """List live workers with their host, queues and slots in use."""
    return WorkerListBody(await request.operator.now(), await request.operator.workers())
