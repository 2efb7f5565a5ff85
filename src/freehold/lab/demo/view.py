"""How the demo is shown: a living picture in a terminal, plain lines into a pipe."""

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

from freehold.cli.render import simple_table
from freehold.cli.text import clean
from freehold.lab.demo.load import QUEUES
from freehold.lab.demo.snapshot import Missing, Snapshot, Tone
from freehold.model.worker_info import LiveWorker
from freehold.telemetry import log

_STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "bold red", "quiet": "dim"}
_STORY_LINES = 12
_LEAST_STORY_LINES = 3
_MISSING_LINES = 6
_COURSE = 60
_BARS = "▁▂▃▄▅▆▇█"
#: Into a pipe, progress is told as often as this much more has ended.
_PART = 0.1


class DemoView(Protocol):
    """A stage that opens and closes."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def say(self, text: str, tone: Tone = "plain") -> None: ...

    def show(self, scene: Snapshot) -> None: ...


def demo_view(console: Console, most: int) -> DemoView:
    """``most``: how many workers there can be."""
    return ScreenView(console, most) if console.is_terminal else LineView(console)


class LineView:
    """One line for everything that happens, and some on the way."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._hearing = KeyReader(self.say)
        self._told = 0.0
        self._act = ""

    def __enter__(self) -> Self:
        self._hearing.begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._hearing.end()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self._console.print(_line(text), soft_wrap=True)

    def show(self, scene: Snapshot) -> None:
        part = scene.ended / scene.jobs
        if part >= self._told + _PART or (scene.ended == scene.jobs and self._told < 1.0):
            self._told = part
            counts = scene.counts
            self.say(
                f"{scene.ended} of {scene.jobs} jobs have ended; {scene.alive} workers; "
                f"{counts.ready} jobs ready, {counts.leased} in hand, {counts.waiting} in backoff, "
                f"{counts.following} behind in a lane"
            )


class ScreenView:
    """The whole of it, drawn anew at every look; what was said stays below."""

    def __init__(self, console: Console, most: int) -> None:
        self._console = console
        self._most = most
        self._hearing = KeyReader(self.say)
        self._story: list[Text] = []
        self._course: list[int] = []
        self._live = Live(console=console, auto_refresh=False)
        self._scene: Snapshot | None = None

    def __enter__(self) -> Self:
        self._hearing.begin()
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        # What stays in the terminal can be scrolled, and has the story from its beginning.
        self._draw(len(self._story))
        self._live.stop()
        self._hearing.end()

    def say(self, text: str, tone: Tone = "plain") -> None:
        line = _line(text, tone)
        line.no_wrap, line.overflow = True, "ellipsis"
        self._story.append(line)
        self._draw()

    def show(self, scene: Snapshot) -> None:
        self._scene = scene
        self._course = [*self._course, scene.alive][-_COURSE:]
        self._draw()

    def _draw(self, story_lines: int | None = None) -> None:
        self._live.update(self.picture(story_lines), refresh=True)

    def picture(self, story_lines: int | None = None) -> RenderableType:
        """With so many lines of the story, or as many as fit."""
        scene = self._scene
        if scene is None:
            return Group(*self._story)
        parts: tuple[RenderableType, ...] = (
            Text(f"freehold demo on {clean(scene.store)}", style="bold"),
            _progress(scene),
            self._course_of(scene),
            Text(),
            Text(scene.act, style="bold yellow"),
            Text(),
            _side_by_side(_workers(scene), _queues(scene)),
            *_missing(scene.missing),
            Text(),
        )
        return Group(*parts, *self._story[-(story_lines or self._room_below(parts)) :])

    def _room_below(self, parts: Sequence[RenderableType]) -> int:
        """What does not fit, a terminal would cut off below, where the news is."""
        used = sum(len(self._console.render_lines(part)) for part in parts)
        return min(_STORY_LINES, max(_LEAST_STORY_LINES, self._console.height - used - 1))

    def _course_of(self, scene: Snapshot) -> Text:
        course = Text(f"{scene.alive} workers ", style="bold")
        course.append("".join(_bar(count, self._most) for count in self._course), style="cyan")
        return course


class KeyReader(logging.Handler):
    """What the manager says in its log is part of the story."""

    def __init__(self, say: Callable[[str, Tone], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say
        self._before = (log.level, log.propagate)

    def begin(self) -> None:
        log.addHandler(self)
        log.setLevel(logging.INFO)
        log.propagate = False

    def end(self) -> None:
        log.removeHandler(self)
        log.level, log.propagate = self._before

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage(), "bad" if record.levelno >= logging.WARNING else "quiet")


def _line(text: str, tone: Tone = "plain") -> Text:
    return Text(f"{time.strftime('%H:%M:%S')}  {clean(text)}", style=_STYLES[tone])


def _progress(scene: Snapshot) -> RenderableType:
    line = Table.grid(padding=(0, 2))
    line.add_row(
        # Red, as a bar is by itself, would be the colour of the killed worker.
        ProgressBar(total=scene.jobs, completed=scene.ended, width=40, complete_style="cyan"),
        f"[bold]{scene.ended}[/] of {scene.jobs} jobs have ended",
    )
    return line


def _workers(scene: Snapshot) -> RenderableType:
    table = simple_table("worker", "state", "in hand", "ended", right=("worker", "ended"))
    for worker in scene.workers:
        state = Text(worker.state, style="green" if worker.state == "working" else "yellow")
        table.add_row(str(worker.pid), state, _slots(worker), str(worker.finished))
    for _ in range(scene.alive - len(scene.workers)):
        table.add_row("…", Text("starting", style="dim"), "", "")
    return table


def _queues(scene: Snapshot) -> RenderableType:
    """An empty one is none to the store, but still one to whoever watches."""
    table = simple_table("queue", "ready", "in hand", right=("ready", "in hand"))
    found = {queue.name: queue for queue in scene.queues}
    for name in QUEUES:
        queue = found.get(name)
        table.add_row(
            name, *(("0", "0") if queue is None else (str(queue.ready), str(queue.leased)))
        )
    counts = scene.counts
    more = f"{counts.waiting} in backoff, {counts.following} behind in a lane"
    return Group(table, Text(more, style="dim"))


def _side_by_side(left: RenderableType, right: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 4))
    grid.add_row(left, right)
    return grid


def _missing(jobs: Sequence[Missing]) -> tuple[RenderableType, ...]:
    """Those that are not back yet first."""
    if not jobs:
        return ()
    table = Table.grid(padding=(0, 2))
    for job in sorted(jobs, key=lambda job: job.is_back)[:_MISSING_LINES]:
        mark = Text("✓", style="green") if job.is_back else Text("✗", style="bold red")
        lane = f"in lane {job.target}" if job.target else ""
        table.add_row(mark, f"job {job.id}", Text(job.task), lane, Text(job.now))
    more = len(jobs) - _MISSING_LINES
    rest = (Text(f"   … and {more} more", style="dim"),) if more > 0 else ()
    return Text(), Text("jobs of the killed worker", style="bold"), table, *rest


def _slots(worker: LiveWorker) -> Text:
    used = min(worker.running, worker.concurrency)
    if worker.concurrency > 10:
        return Text(f"{used} of {worker.concurrency}")
    return Text("■" * used, style="cyan").append("·" * (worker.concurrency - used), style="dim")


def _bar(count: int, most: int) -> str:
    return _BARS[round(min(count / most, 1.0) * (len(_BARS) - 1))]
