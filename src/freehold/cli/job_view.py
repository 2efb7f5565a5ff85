"""`freehold job show`: a job on one screen, with everything that happened to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.render import at, error_text, since, span, state_text
from freehold.cli.table import ListTable
from freehold.cli.text import clean
from freehold.model.history import EventKind, TimelineEntry
from freehold.model.job import ErrorInfo, Job, Lease
from freehold.model.job_log import LogLine, Progress
from freehold.model.payload import stored_object
from freehold.model.step import Step
from freehold.operator import SHOWN_LIMIT, JobDetail

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
_NOT_ALL = f"  only the newest {SHOWN_LIMIT:,} moments and log lines are shown"
_ROUTINE = frozenset({EventKind.CREATED, EventKind.LEASED, EventKind.STARTED})


def job_view(
    detail: JobDetail, now: datetime, *, show_args: bool, show_trace: bool
) -> RenderableType:
    return Group(
        _title(detail.job),
        _details(detail.job, now, show_args),
        Text(),
        _timeline(detail.timeline),
        Text(),
        *(_traces(detail.timeline) if show_trace else ()),
        *_steps(detail.steps, show_args),
        *_log(detail.log),
        *(() if detail.complete else (Text(_NOT_ALL, style="dim"),)),
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
        ("waiting key", job.waiting_key),
        ("limit key", job.limit_key),
        ("tags", ", ".join(job.tags)),
        ("meta", msgspec.json.encode(job.meta).decode() if job.meta else None),
    ):
        if value:
            yield name, value
    yield "created", f"{at(job.created_at)}, {since(job.created_at, now)}"
    if job.report is None and job.lease is None and job.run_at > job.created_at:
        yield "due", f"{at(job.run_at)}, {since(job.run_at, now)}"
    if job.start_by is not None and job.lease is None:
        yield "start by", f"{at(job.start_by)}, {since(job.start_by, now)}; then it is canceled"
    yield "attempts", _attempts(job)
    if job.timeout_seconds is not None:
        yield "timeout", f"{span(job.timeout_seconds)} for each attempt"
    if job.lease is not None:
        yield from _lease_facts(job.lease, now)
    if job.stop_request is not None:
        yield "requested", _request(job)
    if job.reason:
        yield "reason", job.reason
    if job.progress is not None:
        yield "progress", progress_text(job.progress)
    yield from _report_facts(job, now)


def _attempts(job: Job) -> str:
    workers = "its worker" if job.lost_attempts == 1 else "their workers"
    lost = f", {job.lost_attempts} lost with {workers}" if job.lost_attempts else ""
    return f"{job.attempt} of {job.max_attempts}{lost}"


def _lease_facts(lease: Lease, now: datetime) -> Iterator[tuple[str, str]]:
    left = (lease.expires_at - now).total_seconds()
    end = f"ends in {span(left)}" if left > 0 else f"ended {span(left)} ago: its worker is lost"
    yield "lease", f"{lease.owner}, token {lease.token}, {end}"
    yield "heartbeat", f"{at(lease.heartbeat_at)}, {since(lease.heartbeat_at, now)}"


def _request(job: Job) -> str:
    assert job.stop_request is not None
    by = f" by {job.stop_requested_by}" if job.stop_requested_by else ""
    why = f": {job.stop_request_reason}" if job.stop_request_reason else ""
    return f"{job.stop_request.name.lower()}{by}{why}"


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
        yield "error", error_text(report.error)


def _arguments(data: str, shown: bool) -> Text:
    values = stored_object(data)
    if values is None:
        return Text(_shortened(clean(data)) if shown else "unreadable  (--args shows the text)")
    if not values:
        return Text("none", style="dim")
    if not shown:
        names = ", ".join(f"{clean(name)}={MASK}" for name in values)
        return Text.assemble(_shortened(names), ("  (--args shows them)", "dim"))
    lines = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in values.items())
    return Text(clean("\n".join(lines)))


def _timeline(entries: list[TimelineEntry]) -> ListTable:
    """A row with the date where it changes; the others have the time of day."""
    table = ListTable("time (UTC)", "what", "try", "by", "why", names=("by",), wrapped=("why",))
    day = ""
    for entry in entries:
        date = f"{entry.at:%Y-%m-%d}"
        if date != day:
            table.add_row(date, "", "", "", "", style="dim")
            day = date
        table.add_row(
            _time(entry.at),
            Text(entry.kind.replace("_", " "), style=_KIND_STYLE.get(entry.kind, "")),
            "" if entry.attempt is None else str(entry.attempt),
            clean(entry.by or ""),
            _why(entry),
            style="dim" if entry.kind in _ROUTINE else "",
        )
    return table


def _traces(entries: list[TimelineEntry]) -> Iterator[RenderableType]:
    """The tracebacks, below the table, where they have the full width."""
    for entry in entries:
        if entry.error is not None and entry.error.trace:
            attempt = "" if entry.attempt is None else f"attempt {entry.attempt}, "
            yield Text(f"traceback of {attempt}{_time(entry.at)}", style="bold")
            yield Text(_shortened(clean(entry.error.trace.rstrip()), 10 * _TEXT_LIMIT))
            yield Text()


def _steps(steps: list[Step], show_values: bool) -> Iterator[RenderableType]:
    """What steps have returned. Values are private, as arguments are."""
    if not steps:
        return
    value = "value" if show_values else "value (--args)"
    table = ListTable("time (UTC)", "step", "kind", value, names=("step",), wrapped=(value,))
    for step in steps:
        text = step.value if show_values and not step.hidden else MASK
        shown = "" if step.value is None else _shortened(clean(text or ""), 200)
        time = f"{step.at:%Y-%m-%d} {_time(step.at)}"
        table.add_row(time, clean(step.name), step.kind.value, shown)
    yield from (table, Text())


def _log(lines: list[LogLine]) -> Iterator[RenderableType]:
    """What handlers have written with ctx.log."""
    if not lines:
        return
    table = ListTable("time (UTC)", "log", wrapped=("log",))
    for line in lines:
        table.add_row(f"{line.at:%Y-%m-%d} {_time(line.at)}", clean(line.line))
    yield from (table, Text())


def _time(at: datetime) -> str:
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"


def _why(entry: TimelineEntry) -> str:
    parts = []
    if entry.reason:
        parts.append(entry.reason)
    if entry.error is not None and not _is_in(entry.reason or "", entry.error):
        parts.append(error_text(entry.error))
    if entry.due_at is not None and entry.due_at > entry.at:
        parts.append(f"again in {span((entry.due_at - entry.at).total_seconds())}")
    return _shortened(clean("\n".join(parts)), _TEXT_LIMIT)


def _is_in(reason: str, error: ErrorInfo) -> bool:
    """The reason often is the text of the error, or ends with its message."""
    name = error.type.rpartition(".")[2]  # a reason has no module
    if error_text(error) in reason or f"{name}: {error.message}" in reason:
        return True
    return bool(error.message) and reason.endswith(f": {error.message}")


def _shortened(text: str, limit: int = _TEXT_LIMIT) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def progress_text(progress: Progress) -> str:
    of = f" of {progress.total:g}" if progress.total is not None else ""
    return f"{progress.done:g}{of}" + (f", {progress.message}" if progress.message else "")
