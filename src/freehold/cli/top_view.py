"""The picture that `freehold top` shows, and the throughput that it derives from beats."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TypeVar

import msgspec
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.job_view import progress_text
from freehold.cli.render import (
    counts_sentence,
    queue_table,
    simple_table,
    span,
    state_text,
    worker_table,
)
from freehold.cli.text import clean
from freehold.model.job import Job
from freehold.model.worker_info import LiveWorker
from freehold.store.types import JobCounts, QueueInfo

#: A worker that has said nothing for this long ends no jobs that we know of: one idle beat.
_QUIET_SECONDS = 12.0
_COURSE = 60
_BARS = "▁▂▃▄▅▆▇█"
#: What the first line, titles, headings and empty lines between the parts take of a screen.
_FRAME_ROWS = 14
_LEAST_ROWS = 3
#: What the first line has besides the bars.
_SUMMARY_COLUMNS = 76


_T = TypeVar("_T")


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen at one moment."""

    store: str
    queues: list[QueueInfo]
    counts: JobCounts
    workers: list[LiveWorker]
    leased: tuple[Job, ...]
    now: datetime


class JobRate:
    """How many attempts end in a second: from what workers say of themselves, beat by beat.

    Of a worker that was heard once only, it is the mean since it started.
    """

    def __init__(self) -> None:
        self._heard: dict[str, LiveWorker] = {}
        self._rates: dict[str, float] = {}
        self.course: deque[float] = deque(maxlen=_COURSE)

    def take(self, frame: Frame) -> float:
        """The fleet's pace, with this frame taken into account."""
        rates = {worker.owner: self._rate(worker, frame.now) for worker in frame.workers}
        self._rates = rates
        self._heard = {worker.owner: worker for worker in frame.workers}
        total = sum(rates.values())
        self.course.append(total)
        return total

    def _rate(self, worker: LiveWorker, now: datetime) -> float:
        if (now - worker.seen_at).total_seconds() > _QUIET_SECONDS:
            return 0.0
        before = self._heard.get(worker.owner)
        if before is not None and before.seen_at == worker.seen_at:
            return self._rates[worker.owner]
        began, ended = (
            (worker.started_at, 0) if before is None else (before.seen_at, before.finished)
        )
        seconds = (worker.seen_at - began).total_seconds()
        return max(0, worker.finished - ended) / seconds if seconds > 0 else 0.0


def top_view(
    frame: Frame, pace: JobRate, screen: ConsoleDimensions | None = None
) -> RenderableType:
    """All of it, or what fits on the screen."""
    room = None if screen is None else screen.height - _FRAME_ROWS
    queues, more_queues, room = _first(frame.queues, room, 3)
    workers, more_workers, room = _first(frame.workers, room, 2)
    leased, more_leased, room = _first(sorted(frame.leased, key=_began), room, 1)
    bars = _COURSE if screen is None else screen.width - _SUMMARY_COLUMNS
    return Group(
        _summary(frame, pace, bars),
        *_part(
            "Queues",
            queue_table(queues, frame.now),
            more_queues,
            f"in all: {counts_sentence(frame.counts)}",
        ),
        *_part("Workers", worker_table(workers, frame.now), more_workers),
        *_part("Running jobs, longest first", _leased_table(leased, frame.now), more_leased),
    )


def _first(items: list[_T], room: int | None, parts: int) -> tuple[list[_T], int, int | None]:
    """Of the room, at most one part of so many: those shown, how many are not, the room left."""
    if room is None:
        return items, 0, None
    shown = items[: max(_LEAST_ROWS, room // parts)]
    return shown, len(items) - len(shown), room - len(shown)


def _part(
    title: str, table: RenderableType, more: int, beside: str = ""
) -> tuple[RenderableType, ...]:
    """What there is to say of a part stands beside its title: below, rows are scarce."""
    line = Text(title, style="bold underline", no_wrap=True, overflow="ellipsis")
    for words in (beside, f"{more} more are not shown" if more else ""):
        if words:
            line.append(f"   {words}", style="not bold not underline dim")
    if isinstance(table, Table):
        _keep_to_one_line(table)
    return Text(), line, table


def _keep_to_one_line(table: Table) -> None:
    """Numbers, times and states keep their width; of texts, the widest are cut first."""
    for column in table.columns:
        for cell in column.cells:
            if isinstance(cell, Text) and column.header != "state":
                cell.no_wrap, cell.overflow = True, "ellipsis"
            else:
                column.no_wrap = True


def _summary(frame: Frame, pace: JobRate, bars: int) -> RenderableType:
    total = pace.take(frame)
    slots = sum(worker.concurrency for worker in frame.workers)
    used = sum(worker.running for worker in frame.workers)
    oldest = [queue.oldest_ready_at for queue in frame.queues if queue.oldest_ready_at]
    word = "worker" if len(frame.workers) == 1 else "workers"
    line = Table.grid(padding=(0, 3))
    line.add_column()
    for _ in range(3):
        line.add_column(no_wrap=True)
    line.add_row(
        Text(clean(frame.store), style="bold", no_wrap=True, overflow="ellipsis"),
        f"[bold]{len(frame.workers)}[/] {word}, [bold]{used}[/] of {slots} slots",
        f"[bold]{total:.1f}[/] jobs/s {_bars(list(pace.course)[-bars:] if bars > 0 else [])}",
        f"oldest [bold]{span((frame.now - min(oldest)).total_seconds())}[/]" if oldest else "",
    )
    return line


def _bars(course: list[float]) -> str:
    """The last minute as a line of bars."""
    top = max(course, default=0.0)
    if top <= 0.0 or len(course) < 2:
        return ""
    return "".join(_BARS[round(rate / top * (len(_BARS) - 1))] for rate in course)


def _leased_table(jobs: list[Job], now: datetime) -> RenderableType:
    if not jobs:
        return Text("no running jobs", style="dim")
    table = simple_table(
        "id", "task", "queue", "state", "try", "for", "worker", "progress", right=("id", "for")
    )
    for job in jobs:
        assert job.lease is not None  # or it would not be in this list
        table.add_row(
            str(job.id),
            Text(job.task),
            Text(job.queue),
            state_text(job.state),
            f"{job.attempt}/{job.max_attempts}",
            span((now - _began(job)).total_seconds()),
            Text(clean(job.lease.owner)),
            Text(_progress(job)),
        )
    return table


def _began(job: Job) -> datetime:
    return job.created_at if job.lease is None else job.lease.started_at or job.lease.leased_at


def _progress(job: Job) -> str:
    """Only of the attempt that runs: what an earlier one said is over."""
    told = job.progress
    return clean(progress_text(told)) if told is not None and told.attempt == job.attempt else ""
