"""Live workers."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import AttemptsQuery, value_or_none
from freehold.http_auth import Role
from freehold.model.attempt_span import AttemptSpans
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


@routes.get("/api/attempts", Role.VIEWER, query=AttemptsQuery, responses={200: AttemptSpans})
async def list_attempts(request: ApiRequest) -> AttemptSpans:
    """List the newest attempts that ran in a time: when each was leased, started and ended, and by
    which worker."""
    query: AttemptsQuery = request.query
    return await request.operator.attempts(query.since, value_or_none(query.until), query.limit)
