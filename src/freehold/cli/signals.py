"""`freehold signals` lists signals, `freehold signal send` sends one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import click
from rich.console import Group, RenderableType
from rich.text import Text

from freehold.cli.common import (
    StoreChoice,
    StoreCommand,
    StoreGroup,
    as_json,
    by_option,
    print_json,
    store_options,
)
from freehold.cli.render import show, since
from freehold.cli.table import ListTable
from freehold.cli.text import clean
from freehold.model import payload
from freehold.model.signal import KEEP, SignalInfo
from freehold.store.types import PAGE_LIMIT


@click.command(cls=StoreCommand)
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_LIMIT),
    default=100,
    show_default=True,
    help="Signals on one page.",
)
@click.option("--after", default="", help="Next page: the last name of this one.")
@as_json
@store_options
def signals(store: StoreChoice, limit: int, after: str, as_json: bool) -> None:
    """List signals, by name. Their values are not shown."""
    with store.open() as app:
        found = app.operator.signals(after, limit)
        now = app.operator.now()
    if as_json:
        print_json({"signals": found})
    else:
        show(_table(found, now, limit))


def _table(found: Sequence[SignalInfo], now: datetime, limit: int) -> RenderableType:
    if not found:
        return Text("no signals", style="dim")
    table = ListTable("signal", "sent", "by", "kept", "waiting jobs", names=("signal", "by"))
    for each in found:
        table.add_row(
            clean(each.name),
            since(each.at, now),
            clean(each.by or "-"),
            since(each.expires_at, now),
            "woken" if each.delivered else "not woken yet",
        )
    if len(found) < limit:
        return table
    return Group(table, Text(f"\nmore: --after {clean(found[-1].name)!r}", style="dim"))


@click.group(cls=StoreGroup)
def signal() -> None:
    """Send signals to jobs that wait for them."""


@signal.command()
@click.argument("name")
@click.argument("value", default="null")
@click.option(
    "--keep-days",
    type=click.FloatRange(0, min_open=True),
    default=KEEP / timedelta(days=1),
    show_default=True,
    help="For how long it is kept.",
)
@by_option
@as_json
@store_options
def send(
    store: StoreChoice, name: str, value: str, keep_days: float, by: str, as_json: bool
) -> None:
    """Send the signal NAME. VALUE is JSON, null by default: '{"code": "X1"}', 7, '"text"'.

    If it was sent before, its first value is kept.
    """
    parsed = payload.parse("VALUE", value)
    with store.open() as app:
        sent = app.send_signal(name, parsed, by=by, keep=keep_days * 86_400.0)
    if as_json:
        print_json({"name": name, "sent": sent})
    else:
        done = "is sent" if sent else "was sent before, and keeps its first value"
        click.echo(f"signal {clean(name)} {done}")
