"""The audit: changes by operators."""

from __future__ import annotations

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import AuditQuery, value_or_none
from freehold.http_auth import Role
from freehold.model.audit import AuditFilter, AuditPage

routes = Routes()


@routes.get("/api/audit", Role.OPERATOR, query=AuditQuery, responses={200: AuditPage})
async def list_changes(request: ApiRequest) -> AuditPage:
    """List changes by operators, newest first, in pages: author, interface, reason, and the values
    before and after."""
    query: AuditQuery = request.query
    return await request.operator.audit(
        AuditFilter(
            by=value_or_none(query.by),
            verb=value_or_none(query.verb),
            kind=value_or_none(query.kind),
            subject=value_or_none(query.subject),
            before=value_or_none(query.before),
            limit=query.limit,
        )
    )
