"""How far a command is that takes long: a bar for whoever watches, nothing for anybody else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import ProgressColumn as Column


class Tell(Protocol):
    """How much is done, of what there is to do; and a few words beside the bar."""

    def __call__(self, done: int, words: str = "", trouble: str = "") -> None: ...


@contextlib.contextmanager
def progress(title: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Tell]:
    """Without a total: something moves until it is over. The bar goes when the command has an
    answer, and stands on stderr, which is looked at for itself: FORCE_COLOR makes no terminal."""
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
        disable=quiet or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=total, words="", trouble="")

        def tell(done: int, words: str = "", trouble: str = "") -> None:
            bar.update(task, completed=done, words=words, trouble=trouble)

        yield tell
