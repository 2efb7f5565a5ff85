"""Jobs as JSON documents, for the command line and the API.

Values that are stored as JSON text become part of the document. Arguments are private data, and
output often ends up in logs, so a document contains them only on request.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from freehold.model.history import Event, TimelineEntry
from freehold.model.job import ErrorInfo, Job, Lease, Report, StopRequest
from freehold.model.job_log import Progress
from freehold.model.lease_history import LeaseRecord
from freehold.model.meta import MetaValue
from freehold.model.payload import stored_object
from freehold.model.state import Stage, State
from freehold.model.step import Step, StepKind
from freehold.operator import JobDetail


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job; ``args`` is null unless requested, and the stored text itself if that is no JSON
    object within the limits of a payload."""

    id: int
    task: str
    queue: str
    state: State
    stage: Stage | None
    priority: int
    args: dict[str, Any] | str | None
    attempt: int
    max_attempts: int
    lost_attempts: int
    target: str | None
    limit_key: str | None
    unique_key: str | None
    tags: tuple[str, ...]
    timeout_seconds: float | None
    created_at: datetime
    run_at: datetime
    stop_request: StopRequest | None
    stop_requested_by: str | None
    stop_request_reason: str | None
    reason: str | None
    lease: Lease | None
    report: Report | None
    progress: Progress | None
    policy: dict[str, Any]
    meta: dict[str, MetaValue]
    waiting_key: str | None
    start_by: datetime | None
    waits_for: str | None


class LogLineDocument(msgspec.Struct, frozen=True):
    """A log line of a handler; ``token`` identifies the attempt."""

    at: datetime
    token: int
    line: str


class StepDocument(msgspec.Struct, frozen=True):
    """A step of a job; ``token`` identifies the attempt that wrote it. ``value`` is null unless
    requested, as arguments are, and if it is secret."""

    name: str
    number: int
    kind: StepKind
    token: int
    at: datetime
    until: datetime | None
    value: Any
    hidden: bool


class JobDetailDocument(msgspec.Struct, frozen=True):
    """A job with its timeline, its log, its steps and its leases, oldest first. ``complete``:
    false if there are more entries or lines than these, which are the newest 1,000 of each."""

    job: JobDocument
    timeline: list[TimelineEntry]
    log: list[LogLineDocument]
    steps: list[StepDocument]
    leases: list[LeaseRecord]
    complete: bool


#: Fields that a document renders in another form.
_RENDERED_SEPARATELY = frozenset({"args", "policy_json", "report"})


def job_document(job: Job, *, show_args: bool, show_trace: bool = True) -> JobDocument:
    same = {
        name: getattr(job, name)
        for name in job.__struct_fields__
        if name not in _RENDERED_SEPARATELY
    }
    report = job.report
    if report is not None and not show_trace:
        report = msgspec.structs.replace(report, error=without_trace(report.error))
    return JobDocument(
        **same,
        args=_args(job.args) if show_args else None,
        policy=(stored_object(job.policy_json) or {}) if job.policy_json else {},
        report=report,
    )


def _args(text: str) -> dict[str, Any] | str:
    values = stored_object(text)
    return text if values is None else values


def job_detail_document(
    detail: JobDetail, *, show_args: bool, show_trace: bool = True
) -> JobDetailDocument:
    entries = detail.timeline
    if not show_trace:
        entries = [msgspec.structs.replace(e, error=without_trace(e.error)) for e in entries]
    return JobDetailDocument(
        job_document(detail.job, show_args=show_args, show_trace=show_trace),
        entries,
        [LogLineDocument(line.at, line.token, line.line) for line in detail.log],
        [_step_document(step, show_value=show_args) for step in detail.steps],
        detail.leases,
        detail.complete,
    )


def _step_document(step: Step, *, show_value: bool) -> StepDocument:
    is_shown = show_value and not step.hidden and step.value is not None
    value = msgspec.json.decode(step.value or "null") if is_shown else None
    return StepDocument(
        step.name, step.number, step.kind, step.token, step.at, step.until, value, step.hidden
    )


def event_document(event: Event) -> Event:
    return msgspec.structs.replace(event, error=without_trace(event.error))


def without_trace(error: ErrorInfo | None) -> ErrorInfo | None:
    """A traceback quotes source code, which may be confidential."""
    return None if error is None else msgspec.structs.replace(error, trace=None)
