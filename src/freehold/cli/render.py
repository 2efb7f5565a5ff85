"""Values as text and tables for a terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from freehold.cli.table import ListTable
from freehold.cli.text import clean, one_line, shorten_end
from freehold.model.explain import Cause, LimitUse, PauseInfo
from freehold.model.job import ErrorInfo, Job
from freehold.model.limit import ALL_QUEUES
from freehold.model.operator_actions import ActionResult, ActionStatus, OperatorVerb
from freehold.model.plural import bounded, count
from freehold.model.state import Stage, State
from freehold.model.tenant import Tenant, TenantState
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.store.database import Diagnosis
from freehold.store.types import DEPTH_BOUND, JobCounts, JobPage, LaneInfo, NamedLimit, QueueInfo

#: For pipes and files: nothing is cut off to fit a screen that is not there.
_PIPE_WIDTH = 1000
_ERROR_LENGTH = 200
_HASH_LENGTH = 4
_STATE_STYLE = {
    State.PENDING: "dim",
    State.QUEUED: "cyan",
    State.ASSIGNED: "blue",
    State.RUNNING: "bold blue",
    State.PAUSED: "yellow",
    State.SUCCEEDED: "green",
    State.FAILED: "bold red",
    State.CANCELED: "magenta",
}


_WORKER_STYLE = {
    WorkerState.WORKING: "green",
    WorkerState.DRAINING: "yellow",
    WorkerState.STUCK: "bold red",
}

_TENANT_STYLE = {
    TenantState.ACTIVE: "green",
    TenantState.PAUSED: "yellow",
    TenantState.MOVING: "blue",
    TenantState.DEGRADED: "bold red",
}


#: A limit and its use; no use for a rule of many keys.
UsedLimit: TypeAlias = tuple[NamedLimit, LimitUse | None]


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Rich calls this while it handles the error, which `errors.py` reports."""
        raise


def show(renderable: RenderableType) -> None:
    if sys.stdout.isatty():
        _Output(highlight=False).print(renderable)
        return
    plain = Console(file=io.StringIO(), width=_PIPE_WIDTH, highlight=False)
    with plain.capture() as captured:
        plain.print(renderable)
    # Tables pad their last column with spaces, which only disturb in a pipe.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


# -- texts -----------------------------------------------------------------------------------


def span(seconds: float) -> str:
    """As exact as a reader needs it: 300 ms, 4.2 s, 40 s, 29 min, 1 h 27 min, 3 d 4 h."""
    seconds = abs(seconds)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def since(time: datetime, now: datetime) -> str:
    seconds = (now - time).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(seconds)}"


def at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def state_text(state: State) -> Text:
    return Text(str(state), style=_STATE_STYLE[state])


def error_text(error: ErrorInfo) -> str:
    return f"{error.type}: {error.message}"


def result_sentence(verb: OperatorVerb, result: ActionResult) -> str:
    if result.status is ActionStatus.DONE:
        return f"job {result.id} is {result.state}"
    if result.status is ActionStatus.REQUESTED:
        return f"job {result.id} is {result.state}; its worker was asked to {verb} it"
    if is_too_late(verb, result):
        return f"job {result.id} has already succeeded and was not canceled"
    return f"job {result.id} is already {result.state}"


def is_too_late(verb: OperatorVerb, result: ActionResult) -> bool:
    return verb is OperatorVerb.CANCEL and result.state is State.SUCCEEDED


# -- tables ----------------------------------------------------------------------------------


def job_table(
    page: JobPage, holders: Mapping[str, int], waits: Mapping[str, str], now: datetime
) -> RenderableType:
    """``holders``: the job that holds each lane; ``waits``: what keeps a queue from being claimed
    from."""
    if not page.jobs and page.next is None:
        return Text("no jobs", style="dim")
    table = ListTable(
        *("id", "task", "queue", "state", "try", "age", "when", "target"),
        right=("id", "age"),
        names=("task", "queue", "target"),
        details=("when",),
    )
    for job in page.jobs:
        table.add_row(
            str(job.id),
            job.task,
            job.queue,
            state_text(job.state),
            f"{job.attempt}/{job.max_attempts}",
            span((now - job.created_at).total_seconds()),
            _when(job, holders.get(job.target or ""), waits.get(job.queue), now),
            clean(job.target or ""),
        )
    if page.next is None:
        return table
    return Group(table, Text(f"\n{_more(page)}", style="dim"))


def _more(page: JobPage) -> str:
    """How far the page has looked: it may be short because its filter is rare."""
    assert page.looked_until is not None
    looked = f"looked at jobs created since {page.looked_until.isoformat(timespec='seconds')}"
    return f"{looked}; more: --before {page.next}"


def _when(job: Job, holder: int | None, queue_wait: str | None, now: datetime) -> Text:
    """When the job starts, ends or ended, what it waits for, and why it failed."""
    if job.lease is not None:
        left = (job.lease.expires_at - now).total_seconds()
        if left <= 0:
            return Text(f"lease ended {span(left)} ago", style="red")
        return Text(f"lease ends in {span(left)}")
    if job.report is not None:
        ended = since(job.report.finished_at, now)
        if job.report.error is None:
            return Text(f"ended {ended}", style="dim")
        error = shorten_end(one_line(error_text(job.report.error)), _ERROR_LENGTH)
        return Text(f"{error}, {ended}")
    if job.stage is Stage.PARKED:
        return Text(shorten_end(one_line(f"parked: {job.reason}"), _ERROR_LENGTH), style="yellow")
    if job.state is State.QUEUED:
        return Text(_waits_for(job, holder, queue_wait, now))
    return Text(one_line(job.reason or ""), style="dim")


def _waits_for(job: Job, holder: int | None, queue_wait: str | None, now: datetime) -> str:
    match job.stage:
        case Stage.FOLLOWER | Stage.READY if holder not in (None, job.id):
            return f"behind job {holder}"
        case Stage.FOLLOWER:
            return "behind others of its lane"
        case Stage.LIMITED:
            return f"at the limit of {clean(job.limit_key or '')}"
        case Stage.LANE_PAUSED:
            return "its lane is paused"
        case Stage.READY | Stage.LANE_HEAD if queue_wait is not None:
            return queue_wait
    return f"due {since(job.run_at, now)}" if job.run_at > now else "due"


def queue_view(
    queues: list[QueueInfo], counts: JobCounts, pause: PauseInfo | None, now: datetime
) -> RenderableType:
    parts: list[RenderableType] = [queue_table(queues, now), Text()] if queues else []
    if pause is not None:
        parts.append(Text(f"all queues are {pause_sentence(pause, now)}", style="yellow"))
    return Group(*parts, Text(f"in all: {counts_sentence(counts)}", style="dim"))


def pause_sentence(pause: PauseInfo, now: datetime) -> str:
    until = f" until {at(pause.until)}" if pause.until else ""
    why = f": {one_line(pause.reason)}" if pause.reason else ""
    return f"paused by {clean(pause.by)} {since(pause.at, now)}{until}{why}"


def counts_sentence(counts: JobCounts) -> str:
    numbers = ((name, getattr(counts, name)) for name in counts.__struct_fields__)
    totals = [
        f"{bounded(number, DEPTH_BOUND)} {name.replace('_', ' ')}"
        for name, number in numbers
        if number
    ]
    return ", ".join(totals) or "no live jobs"


def queue_table(queues: list[QueueInfo], now: datetime) -> ListTable:
    table = ListTable(
        *("queue", "ready", "leased", "not ready", "oldest", "weight", "limit", "paused"),
        right=("ready", "leased", "not ready", "weight"),
        names=("queue",),
        wrapped=("limit", "paused"),
    )
    for queue in queues:
        oldest = queue.oldest_ready_at
        table.add_row(
            queue.name,
            bounded(queue.ready, queue.bound),
            bounded(queue.leased, queue.bound),
            bounded(queue.not_ready, queue.bound) if queue.not_ready else "",
            span((now - oldest).total_seconds()) if oldest else "",
            f"{queue.weight:g}" if queue.weight != 1 else "",
            str(queue.limit) if queue.limit else "",
            _pause(queue, now),
        )
    return table


def lane_table(lanes: list[LaneInfo], now: datetime) -> RenderableType:
    if not lanes:
        return Text("no lanes", style="dim")
    table = ListTable(
        *("lane", "depth", "head", "state", "since", "why"),
        right=("depth", "head"),
        names=("lane",),
        wrapped=("why",),
    )
    for lane in lanes:
        table.add_row(
            clean(lane.target),
            bounded(lane.depth, lane.bound),
            "" if lane.head is None else str(lane.head),
            "" if lane.head_state is None else state_text(lane.head_state),
            "" if lane.head_since is None else since(lane.head_since, now),
            _why_blocked(lane, now),
        )
    return table


def _why_blocked(lane: LaneInfo, now: datetime) -> Text:
    if lane.pause is not None:
        return Text(pause_sentence(lane.pause, now), style="yellow")
    reason = clean(lane.head_reason or "")
    return (
        Text(f"blocked: {reason or lane.head_state}", style="red") if lane.blocked else Text(reason)
    )


def limit_table(
    queues: Sequence[UsedLimit], keys: Sequence[UsedLimit], shared: LimitUse | None
) -> RenderableType:
    if not queues and not keys and shared is None:
        return Text("no limits", style="dim")
    table = ListTable("of", "name", "limit", "in use", names=("name",), wrapped=("limit", "in use"))
    for rule, use in queues:
        of_all = rule.name == ALL_QUEUES
        table.add_row(
            "all queues" if of_all else "queue",
            "" if of_all else rule.name,
            str(rule.limit),
            _use_text(use),
        )
    for rule, use in keys:
        table.add_row("key", clean(rule.name), str(rule.limit), _use_text(use))
    if shared is not None:
        used = ", ".join(map(str, shared.tenants))
        table.add_row("all tenants", "", str(shared.limit), used or "nothing")
    return table


def _use_text(use: LimitUse | None) -> str:
    if use is None:
        return "by each key"
    parts = [f"{use.leased} running"] if use.limit.max_leases is not None else []
    if use.limit.rate is not None:
        parts.append(f"{count(use.started, 'start')} in the last {use.limit.rate.seconds:g} s")
    if use.next_start_seconds is not None:
        parts.append(f"next in {span(use.next_start_seconds)}")
    return ", ".join(parts)


def worker_table(
    workers: list[LiveWorker], now: datetime, *, short: bool = False
) -> RenderableType:
    if not workers:
        return Text("no workers", style="dim")
    table = ListTable(
        *("worker", "host", "pid", "state", "queues", "slots", "ended", "since", "seen"),
        right=("pid", "slots", "ended"),
        names=("host", "queues"),
    )
    for worker in workers:
        table.add_row(
            short_owner(worker.owner) if short else clean(worker.owner),
            clean(worker.host),
            str(worker.pid),
            _worker_state(worker),
            clean(", ".join(worker.queues)),
            f"{worker.running}/{worker.concurrency}",
            str(worker.finished),
            since(worker.started_at, now),
            since(worker.seen_at, now),
        )
    return table


def short_owner(owner: str) -> str:
    """A worker's name with the beginning of its hash, which is enough to distinguish workers."""
    name, dash, hash_ = clean(owner).rpartition("-")
    return f"{name}{dash}{hash_[:_HASH_LENGTH]}" if dash else hash_


def _worker_state(worker: LiveWorker) -> Text:
    if worker.is_idle:
        return Text("idle", style="dim")
    return Text(str(worker.state), style=_WORKER_STYLE[worker.state])


def tenant_table(tenants: list[Tenant], now: datetime) -> RenderableType:
    if not tenants:
        return Text("no tenants", style="dim")
    table = ListTable(
        *("tenant", "shard", "state", "weight", "slots", "since", "note"),
        right=("weight",),
        names=("tenant", "shard"),
        wrapped=("note",),
    )
    for tenant in tenants:
        table.add_row(
            tenant.name,
            tenant.shard,
            Text(tenant.state.value, style=_TENANT_STYLE[tenant.state]),
            f"{tenant.weight:g}",
            "" if tenant.max_slots is None else str(tenant.max_slots),
            since(tenant.created_at, now),
            clean(tenant.note or ""),
        )
    return table


def _pause(queue: QueueInfo, now: datetime) -> Text:
    if queue.paused_at is None:
        return Text("")
    until = f", until {at(queue.paused_until)}" if queue.paused_until else ""
    why = f": {queue.pause_reason}" if queue.pause_reason else ""
    by = f" by {queue.paused_by}" if queue.paused_by else ""
    return Text(clean(f"{since(queue.paused_at, now)}{by}{until}{why}"), style="yellow")


def diagnosis_table(where: str, diagnoses: list[Diagnosis]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for each in diagnoses:
        mark = Text("✓", style="green") if each.good else Text("✗", style="bold red")
        table.add_row(mark, each.name, Text(clean(each.detail)))
    return Group(Text(where, style="bold"), table)


def causes_text(job_id: int, causes: list[Cause]) -> RenderableType:
    parts: list[RenderableType] = [Text(f"job {job_id}", style="bold")]
    for cause in causes:
        parts.append(_indented(2, Text(one_line(cause.text))))
        if cause.remedy:
            parts.append(_indented(4, Text(f"→ {one_line(cause.remedy)}", style="green")))
    return Group(*parts)


def _indented(columns: int, text: Text) -> Padding:
    """Also where the text continues on the next line."""
    return Padding(text, (0, 0, 0, columns), expand=False)
