"""Jobs as JSON documents, for the command line and the API alike.

What is stored as JSON text becomes part of the document. Arguments are private data, and output
is kept in logs: they are there only where somebody asked for them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from freehold.model.history import Event, TimelineEntry
from freehold.model.job import Error, Job, Lease, Report
from freehold.model.job_log import Progress
from freehold.model.state import Stage, State
from freehold.operator import JobDetail


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job; ``args`` is null unless asked for. ``request``: what was asked of its owner."""

    id: int
    task: str
    queue: str
    state: State
    stage: Stage | None
    priority: int
    args: dict[str, Any] | None
    attempt: int
    max_attempts: int
    lost: int
    target: str | None
    limit_key: str | None
    unique_key: str | None
    tags: tuple[str, ...]
    timeout_seconds: float | None
    created_at: datetime
    run_at: datetime
    request: str | None
    request_by: str | None
    request_reason: str | None
    reason: str | None
    lease: Lease | None
    report: Report | None
    progress: Progress | None
    policy: dict[str, Any]


class LogLineDocument(msgspec.Struct, frozen=True):
    """A line that a handler said; ``token`` tells of which attempt."""

    at: datetime
    token: int
    line: str


class JobDetailDocument(msgspec.Struct, frozen=True):
    """A job with everything that happened to it, and what its handlers said."""

    job: JobDocument
    timeline: list[TimelineEntry]
    log: list[LogLineDocument]


#: Stored as text, or in letters.
_RENDERED_SEPARATELY = frozenset({"args", "policy_json", "request", "report"})


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
        args=msgspec.json.decode(job.args) if show_args else None,
        policy=msgspec.json.decode(job.policy_json) if job.policy_json else {},
        request=None if job.request is None else job.request.name.lower(),
        report=report,
    )


def job_detail_document(
    story: JobDetail, *, show_args: bool, show_trace: bool = True
) -> JobDetailDocument:
    moments = story.timeline
    if not show_trace:
        moments = [msgspec.structs.replace(m, error=without_trace(m.error)) for m in moments]
    return JobDetailDocument(
        job_document(story.job, show_args=show_args, show_trace=show_trace),
        moments,
        [LogLineDocument(note.at, note.token, note.line) for note in story.log],
    )


def event_document(event: Event) -> Event:
    return msgspec.structs.replace(event, error=without_trace(event.error))


def without_trace(error: Error | None) -> Error | None:
    """A traceback quotes code that can be anybody's."""
    return None if error is None else msgspec.structs.replace(error, trace=None)
