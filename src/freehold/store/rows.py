"""Rows into values. Both dialects return the same columns in the same order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from freehold.decoders import decoder
from freehold.model.bulk import Amendment, BulkPreview
from freehold.model.history import Event, EventKind
from freehold.model.job import ErrorInfo, Job, Lease, Report, StopRequest
from freehold.model.job_log import Progress
from freehold.model.meta import decode_meta
from freehold.model.policy import Policy, unpack
from freehold.model.secrets import HIDDEN, hide_arguments
from freehold.model.state import Stage, State, state_of
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.stage_sql import stage_of
from freehold.store.statements import Row

T = TypeVar("T")

_progress_of = decoder(Progress).decode
_error_of = decoder(ErrorInfo).decode
_names_of = decoder(list[str]).decode
#: Columns of bulk operations.
ids_of = decoder(list[int]).decode
#: Arguments, whose values stay as they are written.
raw_values_of = decoder(dict[str, msgspec.Raw]).decode
amendment_of = decoder(Amendment).decode
preview_of = decoder(BulkPreview).decode
counts_of = decoder(list[dict[str, int]]).decode


def _readable(decode: Callable[[str], T], text: str | None) -> T | None:
    """None for a value that Freehold did not write: one row must not make a page unreadable."""
    if not text:
        return None
    try:
        return decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


_JOB_COLUMNS = (
    "id",
    "task",
    "queue",
    "stage",
    "state",
    "priority",
    "args",
    "attempt",
    "max_attempts",
    "lost",
    "target",
    "limit_key",
    "unique_key",
    "tags",
    "timeout_seconds",
    "policy",
    "created_at",
    "run_at",
    "request",
    "request_by",
    "request_reason",
    "reason",
    "owner",
    "token",
    "expires_at",
    "leased_at",
    "heartbeat_at",
    "started_at",
    "finished_at",
    "result",
    "error",
    "progress",
    "meta",
    "waiting_key",
    "start_by",
    "waits_for",
)


def job_of(row: Row) -> Job:
    """Columns as in `_job_columns.sql` or `_history_columns.sql`: live or finished."""
    at = dict(zip(_JOB_COLUMNS, row, strict=True))
    created = time_of(at["created_at"])
    stage = stage_of(at["stage"]) if at["stage"] is not None else None
    state = state_of(stage, at["started_at"] is not None) if stage else State(at["state"])
    if at["policy"] is not None:
        _hide_secrets(at, unpack(at["policy"]))
    return Job(
        id=at["id"],
        task=at["task"],
        queue=at["queue"],
        state=state,
        stage=stage,
        priority=at["priority"],
        args=at["args"],
        attempt=at["attempt"],
        max_attempts=at["max_attempts"],
        lost_attempts=at["lost"],
        target=at["target"],
        limit_key=at["limit_key"],
        unique_key=at["unique_key"],
        tags=names_of(at["tags"]),
        timeout_seconds=at["timeout_seconds"],
        policy_json=at["policy"],
        created_at=created,
        run_at=created if at["run_at"] is None else time_of(at["run_at"]),
        stop_request=StopRequest(at["request"]) if at["request"] else None,
        stop_requested_by=at["request_by"],
        stop_request_reason=at["request_reason"],
        reason=at["reason"],
        lease=_lease(at) if stage is Stage.LEASED else None,
        report=_report(at, state, created) if stage is None else None,
        progress=_readable(_progress_of, at["progress"]),
        meta=decode_meta(at["meta"]),
        waiting_key=at["waiting_key"],
        start_by=maybe_time(at["start_by"]),
        waits_for=at["waits_for"],
    )


def _hide_secrets(at: dict[str, Any], policy: Policy) -> None:
    """Here, so that no reader of jobs can forget it."""
    if policy.secret_args:
        at["args"] = hide_arguments(at["args"], policy.secret_args)
    if policy.secret_result and at["result"] is not None:
        at["result"] = json_text(HIDDEN)


def _lease(at: dict[str, Any]) -> Lease:
    leased = time_of(at["leased_at"])
    beat = leased if at["heartbeat_at"] is None else time_of(at["heartbeat_at"])
    started = maybe_time(at["started_at"])
    return Lease(at["owner"], at["token"], time_of(at["expires_at"]), leased, beat, started)


def _report(at: dict[str, Any], state: State, created: datetime) -> Report:
    finished = time_of(at["finished_at"])
    leased, started = maybe_time(at["leased_at"]), maybe_time(at["started_at"])
    began = started or leased
    return Report(
        state=state,
        finished_at=finished,
        attempts=at["attempt"],
        result=_readable(msgspec.json.decode, at["result"]),
        error=error_of(at["error"]),
        finished_by=at["owner"],
        token=at["token"],
        leased_at=leased,
        started_at=started,
        waited_seconds=(began - created).total_seconds() if began else None,
        ran_seconds=(finished - started).total_seconds() if started else None,
    )


def error_of(text: str | None) -> ErrorInfo | None:
    return _readable(_error_of, text)


class EventRow(NamedTuple):
    """An event as both stores return it."""

    id: int
    job_id: int
    at: datetime | int
    kind: str
    state: str
    attempt: int
    by: str | None
    reason: str | None
    error: str | None
    token: int | None
    leased_at: datetime | int | None
    started_at: datetime | int | None
    due_at: datetime | int | None


def event_of(columns: Row) -> Event:
    row = EventRow._make(columns)
    return Event(
        id=row.id,
        job_id=row.job_id,
        at=time_of(row.at),
        kind=EventKind(row.kind),
        state=State(row.state),
        attempt=row.attempt,
        by=row.by,
        reason=row.reason,
        error=error_of(row.error),
        token=row.token,
        leased_at=maybe_time(row.leased_at),
        started_at=maybe_time(row.started_at),
        due_at=maybe_time(row.due_at),
    )


def names_of(text: str | None) -> tuple[str, ...]:
    """A column with a JSON array of names."""
    return tuple(_readable(_names_of, text) or ())


def json_text(value: Any) -> str | None:
    """A column of JSON; None stays NULL."""
    return None if value is None else msgspec.json.encode(value).decode()
