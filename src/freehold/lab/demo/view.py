"""The display of the demo: a live screen in a terminal, plain lines into a pipe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from freehold.cli.table import ListTable
from freehold.cli.text import clean
from freehold.lab.demo.load import QUEUES
from freehold.lab.demo.snapshot import OrphanedJob, Snapshot, Tone
from freehold.model.worker_info import LiveWorker
from freehold.telemetry import log

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "bold red", "quiet": "dim"}
_MAX_LINES = 12
_MIN_LINES = 3
_MAX_ORPHANS = 6
_MAX_COUNTS = 60
_BARS = "▁▂▃▄▅▆▇█"
#: Into a pipe, progress is printed each time that this share of the jobs has ended.
_LOG_SHARE = 0.1


class DemoView(Protocol):
    """A display that is opened and closed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def log(self, text: str, tone: Tone = "plain") -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...


def demo_view(console: Console, max_workers: int) -> DemoView:
    return ScreenView(console, max_workers) if console.is_terminal else LineView(console)


class LineView:
    """Prints one line per event, and the progress from time to time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._log_handler = ViewLogHandler(self.log)
        self._logged_share = 0.0

    def __enter__(self) -> Self:
        self._log_handler.install()
        return self

    def __exit__(self, *error: object) -> None:
        self._log_handler.remove()

    def log(self, text: str, tone: Tone = "plain") -> None:
        self._console.print(_line(text), soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        share = snapshot.ended / snapshot.jobs
        is_last = snapshot.ended == snapshot.jobs and self._logged_share < 1.0
        if share >= self._logged_share + _LOG_SHARE or is_last:
            self._logged_share = share
            counts = snapshot.counts
            self.log(
                f"{snapshot.ended} of {snapshot.jobs} jobs ended; workers: {snapshot.alive}; "
                f"jobs: {counts.ready} ready, {counts.leased} leased, {counts.waiting} in backoff, "
                f"{counts.following} behind in a lane"
            )


class ScreenView:
    """Draws the latest snapshot, with the last log lines below it."""

    def __init__(self, console: Console, max_workers: int) -> None:
        self._console = console
        self._max_workers = max_workers
        self._log_handler = ViewLogHandler(self.log)
        self._lines: list[Text] = []
        self._worker_counts: list[int] = []
        self._live = Live(console=console, auto_refresh=False)
        self._snapshot: Snapshot | None = None

    def __enter__(self) -> Self:
        self._log_handler.install()
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        # The last picture stays in the terminal and can be scrolled, so it has all log lines.
        self._draw(len(self._lines))
        self._live.stop()
        self._log_handler.remove()

    def log(self, text: str, tone: Tone = "plain") -> None:
        line = _line(text, tone)
        line.no_wrap, line.overflow = True, "ellipsis"
        self._lines.append(line)
        self._draw()

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._worker_counts = [*self._worker_counts, snapshot.alive][-_MAX_COUNTS:]
        self._draw()

    def _draw(self, line_count: int | None = None) -> None:
        self._live.update(self.picture(line_count), refresh=True)

    def picture(self, line_count: int | None = None) -> RenderableType:
        """With this many log lines, or as many as fit."""
        snapshot = self._snapshot
        if snapshot is None:
            return Group(*self._lines)
        parts: tuple[RenderableType, ...] = (
            Text(f"freehold demo on {clean(snapshot.store)}", style="bold"),
            _progress(snapshot),
            self._worker_graph(snapshot),
            Text(),
            Text(snapshot.headline, style="bold yellow"),
            Text(),
            _side_by_side(_workers(snapshot), _queues(snapshot)),
            *_orphans(snapshot.orphans),
            Text(),
        )
        return Group(*parts, *self._lines[-(line_count or self._fitting_lines(parts)) :])

    def _fitting_lines(self, parts: Sequence[RenderableType]) -> int:
        """A terminal would cut off lines that do not fit, and the newest are the lowest."""
        used = sum(len(self._console.render_lines(part)) for part in parts)
        return min(_MAX_LINES, max(_MIN_LINES, self._console.height - used - 1))

    def _worker_graph(self, snapshot: Snapshot) -> Text:
        graph = Text(f"workers: {snapshot.alive} ", style="bold")
        bars = "".join(_bar(count, self._max_workers) for count in self._worker_counts)
        return graph.append(bars, style="cyan")


class ViewLogHandler(logging.Handler):
    """Shows the manager's log in the view."""

    def __init__(self, show_line: Callable[[str, Tone], None]) -> None:
        super().__init__(logging.INFO)
        self._show_line = show_line
        self._before = (log.level, log.propagate)

    def install(self) -> None:
        log.addHandler(self)
        log.setLevel(logging.INFO)
        log.propagate = False

    def remove(self) -> None:
        log.removeHandler(self)
        log.level, log.propagate = self._before

    def emit(self, record: logging.LogRecord) -> None:
        tone: Tone = "bad" if record.levelno >= logging.WARNING else "quiet"
        self._show_line(record.getMessage(), tone)


def _line(text: str, tone: Tone = "plain") -> Text:
    return Text(f"{time.strftime('%H:%M:%S')}  {clean(text)}", style=_STYLES[tone])


def _progress(snapshot: Snapshot) -> RenderableType:
    line = Table.grid(padding=(0, 2))
    line.add_row(
        # Not red, the default of a bar, which is the colour of the killed worker.
        ProgressBar(total=snapshot.jobs, completed=snapshot.ended, width=40, complete_style="cyan"),
        f"[bold]{snapshot.ended}[/] of {snapshot.jobs} jobs ended",
    )
    return line


def _workers(snapshot: Snapshot) -> RenderableType:
    table = ListTable("worker", "state", "running", "ended", right=("worker", "ended"))
    for worker in snapshot.workers:
        state = Text(worker.state, style="green" if worker.state == "working" else "yellow")
        table.add_row(str(worker.pid), state, _slots(worker), str(worker.finished))
    for _ in range(snapshot.alive - len(snapshot.workers)):
        table.add_row("…", Text("starting", style="dim"), "", "")
    return table


def _queues(snapshot: Snapshot) -> RenderableType:
    """The store does not list empty queues, so they are added here."""
    table = ListTable("queue", "ready", "leased", right=("ready", "leased"))
    found = {queue.name: queue for queue in snapshot.queues}
    for name in QUEUES:
        queue = found.get(name)
        table.add_row(
            name, *(("0", "0") if queue is None else (str(queue.ready), str(queue.leased)))
        )
    counts = snapshot.counts
    more = f"{counts.waiting} in backoff, {counts.following} behind in a lane"
    return Group(table, Text(more, style="dim"))


def _side_by_side(left: RenderableType, right: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 4))
    grid.add_row(left, right)
    return grid


def _orphans(jobs: Sequence[OrphanedJob]) -> tuple[RenderableType, ...]:
    """Jobs that are not recovered yet come first."""
    if not jobs:
        return ()
    table = Table.grid(padding=(0, 2))
    for job in sorted(jobs, key=lambda job: job.is_recovered)[:_MAX_ORPHANS]:
        mark = Text("✓", style="green") if job.is_recovered else Text("✗", style="bold red")
        lane = f"in lane {job.target}" if job.target else ""
        table.add_row(mark, f"job {job.id}", Text(job.task), lane, Text(job.status))
    more = len(jobs) - _MAX_ORPHANS
    rest = (Text(f"   … and {more} more", style="dim"),) if more > 0 else ()
    return Text(), Text("jobs of the killed worker", style="bold"), table, *rest


def _slots(worker: LiveWorker) -> Text:
    used = min(worker.running, worker.concurrency)
    if worker.concurrency > 10:
        return Text(f"{used} of {worker.concurrency}")
    return Text("■" * used, style="cyan").append("·" * (worker.concurrency - used), style="dim")


def _bar(count: int, max_workers: int) -> str:
    return _BARS[round(min(count / max_workers, 1.0) * (len(_BARS) - 1))]
