"""Progress of long commands: a bar in a terminal, a line a minute in a log."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import ProgressColumn as Column

from freehold.clock import monotonic

_LINE_SECONDS = 60.0


class ReportProgress(Protocol):
    """Takes the amount done, and texts beside the bar: a note, and what has failed."""

    def __call__(self, done: int, note: str = "", failed: str = "") -> None: ...


@contextlib.contextmanager
def progress(
    title: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    now: Callable[[], float] = monotonic,
) -> Iterator[ReportProgress]:
    """Without a total, the bar pulses until the end. The bar is drawn on stderr and removed before
    the command prints its result. Only `isatty` decides: FORCE_COLOR makes no terminal."""
    if not sys.stderr.isatty():
        yield _lines(title, total, quiet, now)
        return
    counted: list[Column] = [] if total is None else [MofNCompleteColumn()]
    bar = Progress(
        TextColumn(f"[bold]{escape(title)}"),
        BarColumn(30, complete_style="cyan", pulse_style="cyan"),
        *counted,
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TextColumn("{task.fields[failed]}", markup=False, style="bold red"),
        console=Console(stderr=True),
        transient=True,
        disable=quiet,
    )
    with bar:
        task = bar.add_task("", total=total, note="", failed="")

        def report(done: int, note: str = "", failed: str = "") -> None:
            bar.update(task, completed=done, note=note, failed=failed)

        yield report


def _lines(title: str, total: int | None, quiet: bool, now: Callable[[], float]) -> ReportProgress:
    due = now() + _LINE_SECONDS

    def report(done: int, note: str = "", failed: str = "") -> None:
        nonlocal due
        if quiet or now() < due:
            return
        due = now() + _LINE_SECONDS
        counted = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        texts = "; ".join(filter(None, (note, failed)))
        click.echo(f"{title}: {counted}" + (f" ({texts})" if texts else ""), err=True)

    return report
