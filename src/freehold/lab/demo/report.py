"""The table at the end of the demo."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freehold.cli.text import clean
from freehold.lab.demo.check import Check

_MAX_LISTED = 10


def demo_report(
    console: Console, found: Check, worker_counts: Sequence[int], killed: int | None
) -> None:
    """``worker_counts``: the number of workers, each time that it changed; ``killed``: a pid."""
    table = Table(title="Result", title_justify="left", title_style="bold", show_header=False)
    table.add_row("jobs", f"{found.jobs}: {_states(found)}")
    table.add_row("attempts recorded by handlers", str(found.attempts))
    table.add_row("retries after an error", str(found.retried))
    table.add_row(
        "worker killed", "none: the jobs ended too soon" if killed is None else f"pid {killed}"
    )
    table.add_row("jobs recovered from it", str(found.recovered))
    table.add_row("workers", " → ".join(map(str, _turning_points(worker_counts))))
    table.add_row(
        "lanes in order",
        f"{found.lanes - len(found.disordered_lanes)} of {found.lanes}",
    )
    table.add_row("jobs lost", _listed(found.lost))
    for what, ids in (
        ("jobs in a wrong final state", found.wrong),
        ("jobs that ended without a handler's record", found.unrecorded),
        ("jobs that ran again without a cause", found.unexplained),
        ("lanes out of order", found.disordered_lanes),
    ):
        if ids:
            table.add_row(Text(what, style="red"), _listed(ids))
    console.print()
    console.print(table)
    console.print(
        "[bold green]No job was lost.[/]" if found.good else "[bold red]The check failed.[/]"
    )


def _states(found: Check) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(found.states.items()))


def _turning_points(worker_counts: Sequence[int]) -> list[int]:
    """The local maxima and minima of the number of workers: 2 → 6 → 5 → 6 → 2."""
    turns = [
        count
        for before, count, after in zip(
            worker_counts, worker_counts[1:], worker_counts[2:], strict=False
        )
        if (count > before) != (after > count)
    ]
    return [*worker_counts[:1], *turns, *worker_counts[-1:]]


def _listed(names: Sequence[object]) -> str:
    if not names:
        return "0"
    more = ", …" if names[_MAX_LISTED:] else ""
    return clean(f"{len(names)}: {', '.join(map(str, names[:_MAX_LISTED]))}{more}")
