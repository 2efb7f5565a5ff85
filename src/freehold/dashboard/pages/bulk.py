"""Bulk operations: what they do, how far they are, and what they refused."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from freehold.dashboard.forms import ReasonForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.http.routes import Routes
from freehold.http.schemas import Id, JobPath, value_or_none
from freehold.http_auth import Role

routes = Routes()
_SHOWN = 50


class BulkPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before``: the last operation of the page before."""

    before: Id | UnsetType = UNSET


@routes.get("/bulk", Role.VIEWER, query=BulkPageQuery, responses={200: str})
async def bulk_list(request: PageRequest) -> Page:
    """Operations, newest first."""
    found = await request.operator.bulk.list(value_or_none(request.query.before), _SHOWN)
    return Page(
        template="bulk.html",
        title="Bulk operations",
        section="Bulk",
        values={"operations": found, "next": found[-1].id if len(found) == _SHOWN else None},
        command=request.command_line("bulk"),
        topics=("bulk",),
    )


@routes.get("/bulk/{id}", Role.VIEWER, path=JobPath, responses={200: str})
async def bulk_page(request: PageRequest) -> Page:
    """One operation with its progress and its refusals by cause."""
    operation = await request.operator.bulk.show(request.path.id)
    return Page(
        template="bulk_operation.html",
        title=f"Bulk operation {operation.id}",
        section="Bulk",
        values={"operation": operation, "filter": _filter(operation.filter)},
        command=request.command_line("bulk", "show", operation.id),
        topics=("bulk",),
    )


def _filter(stored: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in stored.items() if value not in (None, [], {}, "")}


@routes.post("/bulk/{id}/stop", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={303: str})
async def stop_bulk(request: PageRequest) -> Redirect:
    """No further job is changed until it is resumed."""
    number = request.path.id
    await request.operator.bulk.stop(number, by=request.by, reason=request.body.reason)
    return Redirect(request.url("bulk", number), f"Bulk operation {number} is stopped.")


@routes.post(
    "/bulk/{id}/resume", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={303: str}
)
async def resume_bulk(request: PageRequest) -> Redirect:
    """It goes on with the jobs that it has not reached."""
    number = request.path.id
    await request.operator.bulk.resume(number, by=request.by, reason=request.body.reason)
    return Redirect(request.url("bulk", number), f"Bulk operation {number} is resumed.")
