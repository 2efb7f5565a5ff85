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
    BadSettings,
    BulkNotFound,
    FlowNotFound,
    FreeholdError,
    JobNotFound,
    LeaseLost,
    MissingPrivilege,
    OutcomeUnknown,
    Refused,
    ScheduleNotFound,
    SchemaMissing,
    SchemaTooNew,
    SequenceBehind,
    StoreError,
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
    ScheduleNotFound: 404,
    BulkNotFound: 404,
    FlowNotFound: 404,
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
    SequenceBehind: 503,
    SchemaTooNew: 503,
    FreeholdError: 500,
}


#: What a caller of one tenant gets instead of the error's text, which may name the address of the
#: database, other tenants or shards. The first base class counts here too.
FOR_TENANTS: dict[type[FreeholdError], str] = {
    BadSettings: "the settings of the service do not allow it: ask the operator of the service",
    OutcomeUnknown: "the database returned no result: it may have happened or not; check, and "
    "repeat an enqueue with its idempotency_key",
    StoreReadOnly: "the database accepts no writes at present: try again later",
    StoreFull: "the database accepts no writes at present: try again later",
    StoreError: "the database is not available at present: try again later",
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
    return _response(_problem_of_api_error(error), error.headers)


def _problem_of_api_error(error: ApiError) -> Problem:
    name = error.title.lower().replace(" ", "-")
    return Problem(_TYPE + name, error.title, error.status, error.detail)


def problem_of(error: Exception, *, hide_details: bool) -> tuple[Problem, Mapping[str, str] | None]:
    """Any error as a problem with its headers. ``hide_details``: for a caller of one tenant."""
    if isinstance(error, ApiError):
        return _problem_of_api_error(error), error.headers
    return _problem_of_error(error, hidden_detail(error) if hide_details else None)


def hidden_detail(error: Exception) -> str | None:
    """The detail for a caller of one tenant, if that must not be the error's text."""
    return next((FOR_TENANTS[each] for each in type(error).__mro__ if each in FOR_TENANTS), None)


def of_error(error: Exception, detail: str | None = None) -> Response:
    """``detail`` replaces the error's text."""
    return _response(*_problem_of_error(error, detail))


def _problem_of_error(
    error: Exception, detail: str | None
) -> tuple[Problem, Mapping[str, str] | None]:
    """An error outside of the project's error tree is a bug: its text goes only into the log."""
    kind = type(error)
    status = next((STATUS[each] for each in kind.__mro__ if each in STATUS), 500)
    if status == 500:
        log.error("a request failed: %s", kind.__name__, exc_info=error)
        return Problem(_TYPE + "bug", "Internal error", 500, _BUG), None
    title = (kind.__doc__ or kind.__name__).partition("\n")[0].rstrip(".")
    holder = error.holder if isinstance(error, UniqueKeyTaken) else None
    shown = _safe(str(error)) if detail is None else detail
    problem = Problem(_TYPE + _kebab_case(kind), title, status, shown, holder)
    return problem, {"Retry-After": "1"} if isinstance(error, StoreUnavailable) else None


def _kebab_case(kind: type[Exception]) -> str:
    """JobNotFound -> job-not-found"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


def _safe(text: str) -> str:
    """Quoted input may contain surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, MEDIA_TYPE)
