"""Bulk operations: one verb on all jobs of a filter."""

from __future__ import annotations

from typing import Any

import msgspec

from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Routes
from freehold.http.schemas import (
    ActionBody,
    BulkBody,
    BulkListQuery,
    JobPath,
    PreviewBody,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.model.bulk import Amendment, BulkOperation, BulkPreview, BulkVerb
from freehold.operations.previews import ActionPreview
from freehold.store.types import JobFilter

routes = Routes()


class BulkListBody(msgspec.Struct, frozen=True):
    """Operations, newest first. ``next`` is the ``before`` of the next page, null after the
    last."""

    operations: list[BulkOperation]
    next: int | None


@routes.post(
    "/api/bulk/preview",
    Role.OPERATOR,
    body=BulkBody,
    responses={200: BulkPreview},
    problems=(409,),
)
async def preview_bulk(request: ApiRequest) -> BulkPreview:
    """Count what a bulk operation would do, by cause. Nothing is written."""
    body: BulkBody = request.body
    return await request.operator.bulk.preview(body.verb, _filter(body), _changes(body))


@routes.post("/api/jobs/preview", Role.OPERATOR, body=PreviewBody, responses={200: ActionPreview})
async def preview_jobs(request: ApiRequest) -> ActionPreview:
    """Preview a verb on chosen jobs: what it would do with each, and why not. Nothing is
    written."""
    body: PreviewBody = request.body
    return await request.operator.preview(body.verb, body.ids, _changes(body))


@routes.post(
    "/api/bulk", Role.OPERATOR, body=BulkBody, responses={201: BulkOperation}, problems=(409,)
)
async def start_bulk(request: ApiRequest) -> ApiResponse:
    """Apply one verb to all jobs that match now. Up to 100 jobs are changed by the request itself;
    a larger operation is carried out by the workers. ``delete`` needs the role admin."""
    body: BulkBody = request.body
    if body.verb is BulkVerb.DELETE:
        request.check_role(Role.ADMIN, "deleting jobs")
    operation = await request.operator.bulk.start(
        body.verb, _filter(body), _changes(body), by=request.by, reason=body.reason
    )
    return ApiResponse(201, operation)


def _filter(body: BulkBody) -> JobFilter:
    fields: dict[str, Any] = msgspec.structs.asdict(body.filter)
    return JobFilter(**{**fields, "states": frozenset(body.filter.states)})


def _changes(body: BulkBody | PreviewBody) -> Amendment | None:
    return None if body.changes is None else Amendment(**msgspec.structs.asdict(body.changes))


@routes.get("/api/bulk", Role.VIEWER, query=BulkListQuery, responses={200: BulkListBody})
async def list_bulk(request: ApiRequest) -> BulkListBody:
    """List bulk operations with their progress, newest first, in pages."""
    query: BulkListQuery = request.query
    found = await request.operator.bulk.list(value_or_none(query.before), query.limit)
    return BulkListBody(found, found[-1].id if len(found) == query.limit else None)


@routes.get("/api/bulk/{id}", Role.VIEWER, path=JobPath, responses={200: BulkOperation})
async def show_bulk(request: ApiRequest) -> BulkOperation:
    """Show a bulk operation with its progress."""
    return await request.operator.bulk.show(request.path.id)


@routes.post(
    "/api/bulk/{id}/stop",
    Role.OPERATOR,
    path=JobPath,
    body=ActionBody,
    responses={200: BulkOperation},
    problems=(409,),
)
async def stop_bulk(request: ApiRequest) -> BulkOperation:
    """Stop a running bulk operation: after this, no job is changed until it is resumed."""
    return await request.operator.bulk.stop(
        request.path.id, by=request.by, reason=request.body.reason
    )


@routes.post(
    "/api/bulk/{id}/resume",
    Role.OPERATOR,
    path=JobPath,
    body=ActionBody,
    responses={200: BulkOperation},
    problems=(409,),
)
async def resume_bulk(request: ApiRequest) -> BulkOperation:
    """Continue a stopped bulk operation with the jobs that it has not reached."""
    return await request.operator.bulk.resume(
        request.path.id, by=request.by, reason=request.body.reason
    )
