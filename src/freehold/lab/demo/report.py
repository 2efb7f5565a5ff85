"""What the demo says at its end."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from freehold.cli.text import clean
from freehold.lab.demo.check import Check

_SHOWN = 10


def demo_report(console: Console, found: Check, course: Sequence[int], killed: int | None) -> None:
    """``course``: how many workers lived, one after another; ``killed``: one of them."""
    table = Table(
        title="What became of it", title_justify="left", title_style="bold", show_header=False
    )
    table.add_row("jobs, as their kinds end", f"{found.jobs}: {_states(found)}")
    table.add_row("attempts that handlers saw", str(found.attempts))
    table.add_row("retried after an error", str(found.retried))
    table.add_row(
        "worker killed with -9", "none: it was over too soon" if killed is None else str(killed)
    )
    table.add_row("recovered from it", str(found.recovered))
    table.add_row("workers", " → ".join(map(str, _peaks(course))))
    table.add_row(
        "lanes that kept their order",
        f"{found.lanes - len(found.disordered_lanes)} of {found.lanes}",
    )
    table.add_row("lost", _listed(found.lost))
    for what, ids in (
        ("ended otherwise than they should", found.wrong),
        ("ended, and no handler knows of it", found.unheard),
        ("ran again, and nothing says why", found.unexplained),
        ("lanes out of order", found.disordered_lanes),
    ):
        if ids:
            table.add_row(Text(what, style="red"), _listed(ids))
    console.print()
    console.print(table)
    console.print(
        "[bold green]Nothing was lost.[/]" if found.good else "[bold red]NOT as it should be.[/]"
    )


def _states(found: Check) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(found.states.items()))


def _peaks(course: Sequence[int]) -> list[int]:
    """Where the number of workers turned: 2 → 6 → 5 → 6 → 2."""
    turns = [
        count
        for before, count, after in zip(course, course[1:], course[2:], strict=False)
        if (count > before) != (after > count)
    ]
    return [*course[:1], *turns, *course[-1:]]


def _listed(names: Sequence[object]) -> str:
    if not names:
        return "0"
    more = ", …" if names[_SHOWN:] else ""
    return clean(f"{len(names)}: {', '.join(map(str, names[:_SHOWN]))}{more}")
