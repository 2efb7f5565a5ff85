"""Every answer that is not what was asked for: application/problem+json (RFC 9457).

The project's errors are mapped here and nowhere else. `type` names the error for programs,
`detail` says what happened and what to do.
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
_OURS = "this is a bug in freehold, or a store in a strange state; its log says more"

#: The status of an error is that of the first of its ancestors that stands here.
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
    """Refused before the queue was asked."""

    def __init__(
        self, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = headers


def of_api_error(denied: ApiError) -> Response:
    word = denied.title.lower().replace(" ", "-")
    problem = Problem(_TYPE + word, denied.title, denied.status, denied.detail)
    return _response(problem, denied.headers)


def of_error(error: Exception) -> Response:
    """What is no error of ours is a bug: it is told to the log, and to nobody else."""
    kind = type(error)
    status = next((STATUS[each] for each in kind.__mro__ if each in STATUS), 500)
    if status == 500:
        log.error("a request failed: %s", kind.__name__, exc_info=error)
        return _response(Problem(_TYPE + "bug", "Internal error", 500, _OURS))
    title = (kind.__doc__ or kind.__name__).partition("\n")[0].rstrip(".")
    holder = error.holder if isinstance(error, UniqueKeyTaken) else None
    problem = Problem(_TYPE + _word(kind), title, status, _safe(str(error)), holder)
    again = {"Retry-After": "1"} if isinstance(error, StoreUnavailable) else None
    return _response(problem, again)


def _word(kind: type[Exception]) -> str:
    """JobNotFound -> job-not-found"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _safe(text: str) -> str:
    """Input that is quoted may hold what is no Unicode text."""
    return text.encode("utf-8", "replace").decode()


def _response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, MEDIA_TYPE)
