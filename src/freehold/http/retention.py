"""Retention of single queues and tasks."""

from __future__ import annotations

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import QueuePath, RetentionBody
from freehold.http_auth import Role
from freehold.store.types import RetentionKind, RetentionRule

routes = Routes()


class RetentionListBody(msgspec.Struct, frozen=True):
    """Queues and tasks with a retention of their own."""

    rules: list[RetentionRule]


@routes.get("/api/retention", Role.VIEWER, responses={200: RetentionListBody})
async def list_retention(request: ApiRequest) -> RetentionListBody:
    """List the queues and tasks with a retention of their own."""
    return RetentionListBody(await request.operator.retention_rules())


@routes.post(
    "/api/retention/queues/{name}",
    Role.ADMIN,
    path=QueuePath,
    body=RetentionBody,
    responses={200: RetentionListBody},
)
async def set_queue_retention(request: ApiRequest) -> RetentionListBody:
    """Delete the finished jobs of a queue after so many days; without ``days`` the rule goes."""
    return await _set(request, RetentionKind.QUEUE)


@routes.post(
    "/api/retention/tasks/{name}",
    Role.ADMIN,
    path=QueuePath,
    body=RetentionBody,
    responses={200: RetentionListBody},
)
async def set_task_retention(request: ApiRequest) -> RetentionListBody:
    """Delete the finished jobs of a task after so many days; without ``days`` the rule goes."""
    return await _set(request, RetentionKind.TASK)


async def _set(request: ApiRequest, kind: RetentionKind) -> RetentionListBody:
    body: RetentionBody = request.body
    await request.operator.set_retention(
        kind, request.path.name, body.days, request.by, body.reason
    )
    return RetentionListBody(await request.operator.retention_rules())
