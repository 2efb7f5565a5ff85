"""`freehold audit`: changes by operators, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.render import show, since
from freehold.cli.table import ListTable
from freehold.cli.text import clean, one_line
from freehold.model.audit import AuditEntry, AuditFilter, AuditKind, AuditPage
from freehold.store.types import PAGE_LIMIT

_KINDS = click.Choice([kind.value for kind in AuditKind])


@click.command(cls=StoreCommand)
@click.option("--by", help="Only changes by this author.")
@click.option("--verb", help="Only these changes, such as retry or set_limit.")
@click.option("--kind", type=_KINDS, help="Only changes of these.")
@click.option("--subject", help="With --kind: the id of a job, or a name.")
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_LIMIT),
    default=50,
    show_default=True,
    help="Changes on one page.",
)
@click.option("--before", type=int, help="Next page: the number printed below this one.")
@as_json
@store_options
def audit(store: StoreChoice, kind: str | None, as_json: bool, **fields: Any) -> None:
    """List changes by operators, newest first."""
    filter = AuditFilter(kind=None if kind is None else AuditKind(kind), **fields)
    with store.open() as app:
        page = app.operator.audit(filter)
        now = app.operator.now()
    if as_json:
        print_json(page)
    else:
        show(_table(page, now))


def _table(page: AuditPage, now: datetime) -> RenderableType:
    if not page.entries and page.next is None:
        return Text("no changes", style="dim")
    table = ListTable(
        *("when", "by", "via", "change", "of", "before", "after", "reason"),
        names=("by", "of"),
        wrapped=("before", "after", "reason"),
    )
    for entry in page.entries:
        table.add_row(*_cells(entry, now))
    if page.next is None or page.looked_until is None:
        return table
    looked = f"looked at changes since {page.looked_until.isoformat(timespec='seconds')}"
    return Group(table, Text(f"\n{looked}; more: --before {page.next}", style="dim"))


def _cells(entry: AuditEntry, now: datetime) -> list[str]:
    return [
        since(entry.at, now),
        clean(entry.by),
        entry.via,
        entry.verb,
        clean(f"{entry.kind} {entry.subject}"),
        _values(entry.before, entry.after),
        _values(entry.after, entry.after),
        clean(one_line(entry.reason or "")),
    ]


def _values(values: dict[str, Any] | None, shown: dict[str, Any] | None) -> str:
    """Of the values before a change, those that it changes."""
    if not values:
        return ""
    chosen = {name: values[name] for name in shown or values if name in values}
    return clean(", ".join(f"{name}={value}" for name, value in chosen.items()))
