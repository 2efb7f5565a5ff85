"""`freehold failures`: the newest failures in groups."""

from __future__ import annotations

from datetime import datetime

import click
from rich.console import Group, RenderableType
from rich.text import Text

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.render import show, since
from freehold.cli.table import ListTable
from freehold.cli.text import one_line
from freehold.model.failures import Failures
from freehold.model.plural import count


@click.command(cls=StoreCommand)
@as_json
@store_options
def failures(store: StoreChoice, as_json: bool) -> None:
    """List the newest failures in groups. A group is a task, a type of error and a message without
    numbers and ids."""
    with store.open() as app:
        found, now = app.operator.failures(), app.operator.now()
    if as_json:
        print_json(found)
    else:
        show(_table(found, now))


def _table(found: Failures, now: datetime) -> RenderableType:
    looked = f"of the newest {count(found.looked_at, 'unsuccessful job')}"
    if not found.groups:
        return Text(f"no failures {looked}", style="dim")
    table = ListTable(
        *("jobs", "task", "error", "message", "first", "last", "newest"),
        right=("jobs", "newest"),
        names=("task", "error"),
        wrapped=("message",),
    )
    for each in found.groups:
        table.add_row(
            str(each.count),
            each.task,
            one_line(each.error or ""),
            one_line(each.message),
            since(each.first_at, now),
            since(each.last_at, now),
            str(each.ids[0]),
        )
    return Group(table, Text(f"\n{looked}", style="dim"))
