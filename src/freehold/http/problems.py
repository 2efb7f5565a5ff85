"""Error responses: application/problem+json (RFC 9457).

The project's errors are mapped to statuses only here. `type` names the error for programs,
`detail` states what happened and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from freehold.errors import (
    BadInput,
    FreeholdError,
    JobNotFound,
    LeaseLost,
    MissingPrivilege,
    OutcomeUnknown,
    Refused,
    SchemaMissing,
    SchemaTooNew,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    TenantNotFound,
    UniqueKeyTaken,
)
from freehold.telemetry import log

MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:freehold:problem:"
_BUG = "this is a bug in freehold, or a store in an unexpected state; see the log of the service"

#: The status of an error is that of its first base class in this table.
STATUS: dict[type[FreeholdError], int] = {
    JobNotFound: 404,
    TenantNotFound: 404,
    Refused: 409,
    LeaseLost: 409,
    BadInput: 422,
    StoreUnavailable: 503,
    OutcomeUnknown: 503,
    StoreReadOnly: 503,
    StoreFull: 503,
    MissingPrivilege: 503,
    SchemaMissing: 503,
    SchemaTooNew: 503,
    FreeholdError: 500,
}


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something was not done. ``holder``: the job that has the unique key."""

    type: str
    title: str
    status: int
    detail: str
    holder: int | None = None


class ApiError(Exception):
    """A request that is refused before it reaches the store."""

    def __init__(
        self, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers


def of_api_error(error: ApiError) -> Response:
    name = error.title.lower().replace(" ", "-")
    problem = Problem(_TYPE + name, error.title, error.status, error.detail)
    return _response(problem, error.headers)


def of_error(error: Exception) -> Response:
    """An error outside of the project's error tree is a bug: its text goes only into the log."""
    kind = type(error)
    status = next((STATUS[each] for each in kind.__mro__ if each in STATUS), 500)
    if status == 500:
        log.error("a request failed: %s", kind.__name__, exc_info=error)
        return _response(Problem(_TYPE + "bug", "Internal error", 500, _BUG))
    title = (kind.__doc__ or kind.__name__).partition("\n")[0].rstrip(".")
    holder = error.holder if isinstance(error, UniqueKeyTaken) else None
    problem = Problem(_TYPE + _kebab_case(kind), title, status, _safe(str(error)), holder)
    headers = {"Retry-After": "1"} if isinstance(error, StoreUnavailable) else None
    return _response(problem, headers)


def _kebab_case(kind: type[Exception]) -> str:
    """JobNotFound -> job-not-found"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _safe(text: str) -> str:
    """Quoted input may contain surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, MEDIA_TYPE)
