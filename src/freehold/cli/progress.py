"""How far a command is that takes long: a bar for whoever watches, a line a minute for a log."""

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
    """How much is done, of what there is to do; and a few words beside the bar."""

    def __call__(self, done: int, words: str = "", trouble: str = "") -> None: ...


@contextlib.contextmanager
def progress(
    title: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    now: Callable[[], float] = monotonic,
) -> Iterator[ReportProgress]:
    """Without a total: something moves until it is over. The bar goes when the command has an
    answer, and stands on stderr, which is looked at for itself: FORCE_COLOR makes no terminal."""
    if not sys.stderr.isatty():
        yield _lines(title, total, quiet, now)
        return
    counted: list[Column] = [] if total is None else [MofNCompleteColumn()]
    bar = Progress(
        TextColumn(f"[bold]{escape(title)}"),
        BarColumn(30, complete_style="cyan", pulse_style="cyan"),
        *counted,
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TextColumn("{task.fields[trouble]}", markup=False, style="bold red"),
        console=Console(stderr=True),
        transient=True,
        disable=quiet,
    )
    with bar:
        task = bar.add_task("", total=total, words="", trouble="")

        def tell(done: int, words: str = "", trouble: str = "") -> None:
            bar.update(task, completed=done, words=words, trouble=trouble)

        yield tell


def _lines(title: str, total: int | None, quiet: bool, now: Callable[[], float]) -> ReportProgress:
    due = now() + _LINE_SECONDS

    def tell(done: int, words: str = "", trouble: str = "") -> None:
        nonlocal due
        if quiet or now() < due:
            return
        due = now() + _LINE_SECONDS
        counted = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        said = "; ".join(filter(None, (words, trouble)))
        click.echo(f"{title}: {counted}" + (f" ({said})" if said else ""), err=True)

    return tell
