"""What needs a person, and the newest failures in groups."""

from __future__ import annotations

from datetime import datetime

import msgspec

from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.model.failures import Failures
from freehold.model.findings import Finding

routes = Routes()


class FindingListBody(msgspec.Struct, frozen=True):
    """At most 10, worst first."""

    now: datetime
    findings: list[Finding]


@routes.get("/api/findings", Role.VIEWER, responses={200: FindingListBody})
async def list_findings(request: ApiRequest) -> FindingListBody:
    """List what needs a person, such as queues without a worker and blocked lanes, each with its
    remedy."""
    return FindingListBody(await request.operator.now(), await request.operator.findings())


@routes.get("/api/failures", Role.VIEWER, responses={200: Failures})
async def list_failures(request: ApiRequest) -> Failures:
    """Group the newest failures by task, type of the error, and message without its numbers and
    ids."""
    return await request.operator.failures()
