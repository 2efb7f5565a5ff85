"""The audit: changes by operators, with both values."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from freehold.dashboard.page_request import Page, PageRequest
from freehold.errors import BadInput
from freehold.http.routes import Routes
from freehold.http.schemas import Id, value_or_none
from freehold.http_auth import Role
from freehold.model.audit import AuditFilter, AuditKind

routes = Routes()
Text = Annotated[str, Meta(max_length=200)]


class AuditListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``before``: the cursor of the page before. A form sends its empty fields, too."""

    by: Text = ""
    verb: Text = ""
    kind: Text = ""
    subject: Text = ""
    before: Id | UnsetType = UNSET


@routes.get("/audit", Role.OPERATOR, query=AuditListQuery, responses={200: str})
async def audit_list(request: PageRequest) -> Page:
    """Changes, newest first: author, interface, reason, and the values before and after."""
    query: AuditListQuery = request.query
    filter = AuditFilter(
        by=query.by or None,
        verb=query.verb or None,
        kind=_kind(query.kind),
        subject=query.subject or None,
        before=value_or_none(query.before),
    )
    page = await request.operator.audit(filter)
    return Page(
        template="audit.html",
        title="Audit",
        section="Audit",
        values={"entries": page.entries, "next": page.next, "query": query, "kinds": AuditKind},
        command=request.command_line("audit"),
        topics=("events",),
    )


def _kind(text: str) -> AuditKind | None:
    try:
        return AuditKind(text) if text else None
    except ValueError:
        raise BadInput(f"kind {text!r}: give one of {', '.join(AuditKind)}") from None
