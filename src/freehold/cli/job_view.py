"""`freehold job show`: a job on one screen, with everything that happened to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.render import at, since, span, state_text
from freehold.cli.text import clean
from freehold.model.history import EventKind, TimelineEntry
from freehold.model.job import Error, Job, Lease
from freehold.model.job_log import LogLine, Progress
from freehold.operator import JobDetail

MASK = "•••"
_TEXT_LIMIT = 2000
_KIND_STYLE = {
    EventKind.SUCCEEDED: "green",
    EventKind.FAILED: "bold red",
    EventKind.RETRIED: "yellow",
    EventKind.LEASE_LOST: "yellow",
    EventKind.CANCELED: "magenta",
    EventKind.CANCEL_REQUESTED: "magenta",
    EventKind.PAUSED: "yellow",
    EventKind.PAUSE_REQUESTED: "yellow",
}
_ROUTINE = frozenset({EventKind.CREATED, EventKind.LEASED, EventKind.STARTED})


def job_view(
    story: JobDetail, now: datetime, *, show_args: bool, show_trace: bool
) -> RenderableType:
    return Group(
        _title(story.job),
        _details(story.job, now, show_args),
        Text(),
        _timeline(story.timeline, show_trace),
        Text(),
        *_log(story.log),
    )


def _title(job: Job) -> Text:
    return Text.assemble((f"job {job.id}", "bold"), "  ", job.task, "  ", state_text(job.state))


def _details(job: Job, now: datetime, show_args: bool) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _facts(job, now):
        table.add_row(f"  {name}", Text(_shortened(clean(value))))
    table.add_row("  arguments", _arguments(job.args, show_args))
    return table


def _facts(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    yield "queue", f"{job.queue}, priority {job.priority}"
    for name, value in (
        ("target", job.target),
        ("unique key", job.unique_key),
        ("limit key", job.limit_key),
        ("tags", ", ".join(job.tags)),
    ):
        if value:
            yield name, value
    yield "created", f"{at(job.created_at)}, {since(job.created_at, now)}"
    if job.report is None and job.lease is None and job.run_at > job.created_at:
        yield "due", f"{at(job.run_at)}, {since(job.run_at, now)}"
    yield "attempts", _attempts(job)
    if job.timeout_seconds is not None:
        yield "timeout", f"{span(job.timeout_seconds)} for each attempt"
    if job.lease is not None:
        yield from _lease_facts(job.lease, now)
    if job.request is not None:
        yield "asked", _request(job)
    if job.reason:
        yield "reason", job.reason
    if job.progress is not None:
        yield "progress", progress_text(job.progress)
    yield from _report_facts(job, now)


def _attempts(job: Job) -> str:
    lost = (
        f", {job.lost} lost with {'its' if job.lost == 1 else 'their'} worker" if job.lost else ""
    )
    return f"{job.attempt} of {job.max_attempts}{lost}"


def _lease_facts(lease: Lease, now: datetime) -> Iterator[tuple[str, str]]:
    left = (lease.expires_at - now).total_seconds()
    end = f"ends in {span(left)}" if left > 0 else f"ended {span(left)} ago: its worker is lost"
    yield "lease", f"{lease.owner}, token {lease.token}, {end}"
    yield "heartbeat", f"{at(lease.heartbeat_at)}, {since(lease.heartbeat_at, now)}"


def _request(job: Job) -> str:
    assert job.request is not None
    why = f": {job.request_reason}" if job.request_reason else ""
    return f"to {job.request.name.lower()}, by {job.request_by or 'somebody'}{why}"


def _report_facts(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    report = job.report
    if report is None:
        return
    yield "ended", f"{at(report.finished_at)}, {since(report.finished_at, now)}"
    if report.waited_seconds is not None:
        yield "waited", span(report.waited_seconds)
    if report.ran_seconds is not None:
        yield "ran", span(report.ran_seconds)
    if report.result is not None:
        yield "result", msgspec.json.encode(report.result).decode()
    if report.error is not None:
        yield "error", _error(report.error)


def _arguments(data: str, shown: bool) -> Text:
    values: dict[str, Any] = msgspec.json.decode(data)
    if not values:
        return Text("none", style="dim")
    if not shown:
        names = ", ".join(f"{clean(name)}={MASK}" for name in values)
        return Text.assemble(_shortened(names), ("  (--args shows them)", "dim"))
    lines = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in values.items())
    return Text(clean("\n".join(lines)))


def _timeline(moments: list[TimelineEntry], show_trace: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for name in ("time (UTC)", "what", "try", "by", "why"):
        table.add_column(name, overflow="fold")
    day = ""
    for moment in moments:
        # The date is said when it changes; within a day the hours are what counts.
        today = f"{moment.at:%Y-%m-%d}"
        table.add_row(
            Text(f"{today if today != day else '':10} {_clock(moment.at)}"),
            Text(moment.kind.replace("_", " "), style=_KIND_STYLE.get(moment.kind, "")),
            "" if moment.attempt is None else str(moment.attempt),
            Text(clean(moment.by or "")),
            _why(moment, show_trace),
            style="dim" if moment.kind in _ROUTINE else "",
        )
        day = today
    return table


def _log(notes: list[LogLine]) -> Iterator[RenderableType]:
    """What handlers said by ctx.log; nothing where they said nothing."""
    if not notes:
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("time (UTC)")
    table.add_column("log", overflow="fold")
    for note in notes:
        table.add_row(f"{note.at:%Y-%m-%d} {_clock(note.at)}", Text(clean(note.line)))
    yield from (table, Text())


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}"


def _why(moment: TimelineEntry, show_trace: bool) -> Text:
    parts = []
    if moment.reason:
        parts.append(moment.reason)
    # A reason often is the error, in its own words.
    if moment.error is not None and _error(moment.error) not in (moment.reason or ""):
        parts.append(_error(moment.error))
    if moment.due_at is not None and moment.due_at > moment.at:
        parts.append(f"again in {span((moment.due_at - moment.at).total_seconds())}")
    if show_trace and moment.error is not None and moment.error.trace:
        parts.append(moment.error.trace)
    return Text(_shortened(clean("\n".join(parts)), 10 * _TEXT_LIMIT))


def _error(error: Error) -> str:
    return f"{error.type}: {error.message}"


def _shortened(text: str, limit: int = _TEXT_LIMIT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def progress_text(progress: Progress) -> str:
    of = f" of {progress.total:g}" if progress.total is not None else ""
    return f"{progress.done:g}{of}" + (f", {progress.message}" if progress.message else "")
