"""The screen of `freehold top`, and the throughput that it derives from heartbeats."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TypeVar

import msgspec
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.flow_view import flows_line
from freehold.cli.job_view import progress_text
from freehold.cli.render import (
    counts_sentence,
    pause_sentence,
    queue_table,
    short_owner,
    span,
    worker_table,
)
from freehold.cli.schedule_view import schedules_line
from freehold.cli.table import ListTable
from freehold.cli.text import clean
from freehold.model.explain import PauseInfo
from freehold.model.flow import Flow
from freehold.model.job import Job
from freehold.model.plural import count
from freehold.model.state import State
from freehold.model.worker_info import LiveWorker
from freehold.operator_schedules import ScheduleInfo
from freehold.store.types import FlowLoad, JobCounts, QueueInfo

#: A worker without a heartbeat for this long, one idle interval, counts as finishing nothing.
_SILENT_SECONDS = 12.0
_RATES_KEPT = 60
_BARS = "▁▂▃▄▅▆▇█"
#: The rows that the first line, titles, headings and the empty lines between parts take.
_FRAME_ROWS = 14
_LEAST_ROWS = 3
#: The columns that the first line takes besides the bars.
_SUMMARY_COLUMNS = 76


_T = TypeVar("_T")


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the store at one time."""

    store: str
    queues: list[QueueInfo]
    counts: JobCounts
    pause: PauseInfo | None
    workers: list[LiveWorker]
    leased: tuple[Job, ...]
    now: datetime
    schedules: list[ScheduleInfo] = []
    flow_load: FlowLoad = FlowLoad(0, 0, 0)
    flows: list[Flow] = []


class JobRate:
    """How many attempts end in a second, from two heartbeats of each worker.

    For a worker seen only once it is the mean since its start.
    """

    def __init__(self) -> None:
        self._seen: dict[str, LiveWorker] = {}
        self._rates: dict[str, float] = {}
        self.history: deque[float] = deque(maxlen=_RATES_KEPT)

    def update(self, frame: Frame) -> float:
        """Returns the rate of all workers together, this frame included."""
        rates = {worker.owner: self._rate(worker, frame.now) for worker in frame.workers}
        self._rates = rates
        self._seen = {worker.owner: worker for worker in frame.workers}
        total = sum(rates.values())
        self.history.append(total)
        return total

    def _rate(self, worker: LiveWorker, now: datetime) -> float:
        if (now - worker.seen_at).total_seconds() > _SILENT_SECONDS:
            return 0.0
        before = self._seen.get(worker.owner)
        if before is not None and before.seen_at == worker.seen_at:
            return self._rates[worker.owner]
        began, ended = (
            (worker.started_at, 0) if before is None else (before.seen_at, before.finished)
        )
        seconds = (worker.seen_at - began).total_seconds()
        return max(0, worker.finished - ended) / seconds if seconds > 0 else 0.0


def top_view(
    frame: Frame, rate: JobRate, screen: ConsoleDimensions | None = None
) -> RenderableType:
    """Everything, or as much as fits on the screen."""
    used = _FRAME_ROWS + 2 * (bool(frame.schedules) + bool(frame.flow_load.open))
    rows = None if screen is None else screen.height - used
    queues, more_queues, rows = _first(frame.queues, rows, 3)
    workers, more_workers, rows = _first(frame.workers, rows, 2)
    jobs = sorted((job for job in frame.leased if job.state is State.RUNNING), key=_began)
    running, more_running, rows = _first(jobs, rows, 1)
    assigned = len(frame.leased) - len(jobs)
    bars = _RATES_KEPT if screen is None else screen.width - _SUMMARY_COLUMNS
    return Group(
        _summary(frame, rate, bars),
        *_part(
            "Queues",
            queue_table(queues, frame.now) if queues else Text("no queues", style="dim"),
            more_queues,
            f"in all: {counts_sentence(frame.counts)}",
            "" if frame.pause is None else f"ALL {pause_sentence(frame.pause, frame.now)}",
        ),
        *_part("Workers", worker_table(workers, frame.now, short=True), more_workers),
        *_part(
            "Running jobs, longest first",
            _running_table(running, frame.now),
            more_running,
            f"{assigned} assigned, not yet running" if assigned else "",
        ),
        *((Text(), schedules_line(frame.schedules, frame.now)) if frame.schedules else ()),
        *((Text(), flows_line(frame.flow_load, frame.flows)) if frame.flow_load.open else ()),
    )


def _first(items: list[_T], rows: int | None, parts: int) -> tuple[list[_T], int, int | None]:
    """The items that fit into one of the parts that share the rows, the number of the others, and
    the rows left."""
    if rows is None:
        return items, 0, None
    shown = items[: max(_LEAST_ROWS, rows // parts)]
    return shown, len(items) - len(shown), rows - len(shown)


def _part(
    title: str, table: RenderableType, more: int, note: str = "", warning: str = ""
) -> tuple[RenderableType, ...]:
    """A title with its notes beside it, because rows are scarce, and a table."""
    line = Text(title, style="bold underline", no_wrap=True, overflow="ellipsis")
    if warning:
        line.append(f"   {warning}", style="not underline yellow")
    for text in (note, f"{more} more not shown" if more else ""):
        if text:
            line.append(f"   {text}", style="not bold not underline dim")
    return Text(), line, table.on_one_line() if isinstance(table, ListTable) else table


def _summary(frame: Frame, rate: JobRate, bars: int) -> RenderableType:
    total = rate.update(frame)
    slots = sum(worker.concurrency for worker in frame.workers)
    used = sum(worker.running for worker in frame.workers)
    oldest = [queue.oldest_ready_at for queue in frame.queues if queue.oldest_ready_at]
    line = Table.grid(padding=(0, 3))
    line.add_column()
    for _ in range(3):
        line.add_column(no_wrap=True)
    line.add_row(
        Text(clean(frame.store), style="bold", no_wrap=True, overflow="ellipsis"),
        f"{count(len(frame.workers), 'worker')}, [bold]{used}[/] of {count(slots, 'slot')}",
        f"[bold]{total:.1f}[/] jobs/s {_bars(list(rate.history)[-bars:] if bars > 0 else [])}",
        f"oldest [bold]{span((frame.now - min(oldest)).total_seconds())}[/]" if oldest else "",
    )
    return line


def _bars(rates: list[float]) -> str:
    """The last minute as a line of bars."""
    top = max(rates, default=0.0)
    if top <= 0.0 or len(rates) < 2:
        return ""
    return "".join(_BARS[round(rate / top * (len(_BARS) - 1))] for rate in rates)


def _running_table(jobs: list[Job], now: datetime) -> RenderableType:
    if not jobs:
        return Text("no running jobs", style="dim")
    table = ListTable(
        *("id", "task", "queue", "try", "for", "worker", "progress"),
        right=("id", "for"),
        names=("task", "queue"),
        details=("progress",),
    )
    for job in jobs:
        assert job.lease is not None  # a running job has one
        table.add_row(
            str(job.id),
            job.task,
            job.queue,
            f"{job.attempt}/{job.max_attempts}",
            span((now - _began(job)).total_seconds()),
            short_owner(job.lease.owner),
            _progress(job),
        )
    return table


def _began(job: Job) -> datetime:
    return job.created_at if job.lease is None else job.lease.started_at or job.lease.leased_at


def _progress(job: Job) -> str:
    """The progress of the running attempt; that of an earlier attempt no longer holds."""
    progress = job.progress
    if progress is None or progress.attempt != job.attempt:
        return ""
    return clean(progress_text(progress))
