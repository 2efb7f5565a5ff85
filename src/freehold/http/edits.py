"""Edits of one job: amend a waiting one, clone any."""

from __future__ import annotations

import msgspec

from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Routes
from freehold.http.schemas import AmendBody, CloneBody, JobPath
from freehold.http_auth import Role
from freehold.model import payload
from freehold.model.bulk import Amendment
from freehold.model.operator_actions import ActionResult
from freehold.operator import CloneChanges

routes = Routes()


class ClonedBody(msgspec.Struct, frozen=True):
    """``id`` is the new job."""

    id: int
    cloned_from: int


@routes.post(
    "/api/jobs/{id}/amend",
    Role.OPERATOR,
    path=JobPath,
    body=AmendBody,
    responses={200: ActionResult},
    problems=(409,),
)
async def amend_job(request: ApiRequest) -> ActionResult:
    """Change priority, queue, time or number of attempts of a waiting job."""
    body: AmendBody = request.body
    changes = Amendment(body.priority, body.queue, body.run_at, body.max_attempts)
    (result,) = await request.operator.amend(
        request.path.id, changes=changes, by=request.by, reason=body.reason
    )
    return result


@routes.post(
    "/api/jobs/{id}/clone",
    Role.OPERATOR,
    path=JobPath,
    body=CloneBody,
    responses={201: ClonedBody},
)
async def clone_job(request: ApiRequest) -> ApiResponse:
    """Enqueue a new job like this one, with its arguments or others, which are checked if the task
    is known here."""
    body: CloneBody = request.body
    args = None if body.args is None else payload.encode("the arguments", body.args).decode()
    changes = CloneChanges(
        args=args,
        priority=body.priority,
        queue=body.queue,
        run_at=body.run_at,
        max_attempts=body.max_attempts,
    )
    made = await request.operator.clone(request.path.id, changes, by=request.by, reason=body.reason)
    return ApiResponse(201, ClonedBody(made.id, request.path.id))
