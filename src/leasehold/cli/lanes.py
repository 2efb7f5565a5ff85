"""`leasehold lanes`: one at a time each; how deep, who is at the head, and what blocks it."""

from __future__ import annotations

from datetime import datetime

import click

from leasehold.cli.common import StoreChoice, as_json, by_option, print_json, store_options
from leasehold.cli.render import lane_table, show
from leasehold.cli.types import moment


@click.group(invoke_without_command=True)
@click.option("--after", default="", metavar="TARGET", help="Begin behind this lane.")
@click.option("--limit", default=100, show_default=True, help="How many.")
@as_json
@store_options
@click.pass_context
def lanes(
    context: click.Context, store: StoreChoice, after: str, limit: int, as_json: bool
) -> None:
    """List lanes; `pause` and `resume` them as such."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operate.lanes(after, limit)
        now = app.operate.now()
    if as_json:
        print_json({"lanes": found, "next": found[-1].target if len(found) == limit else None})
    else:
        show(lane_table(found, now))


@lanes.command()
@click.argument("target")
@click.option("--reason", help="Why; `explain` tells it to whoever asks.")
@click.option("--until", type=moment, metavar="TIME", help="Until this time: 2030-01-31T12:00:00Z.")
@by_option
@as_json
@store_options
def pause(
    store: StoreChoice,
    target: str,
    reason: str | None,
    until: datetime | None,
    by: str,
    as_json: bool,
) -> None:
    """Hold back the lane TARGET: what runs goes on, the next one waits."""
    with store.open() as app:
        app.operate.pause_lane(target, by, reason, until)
    if as_json:
        print_json({"target": target, "paused": True, "until": until})
    else:
        click.echo(f"lane {target} is paused" + (f" until {until.isoformat()}" if until else ""))


@lanes.command()
@click.argument("target")
@as_json
@store_options
def resume(store: StoreChoice, target: str, as_json: bool) -> None:
    """Let the lane TARGET go on."""
    with store.open() as app:
        was_paused = app.operate.resume_lane(target)
    if as_json:
        print_json({"target": target, "paused": False, "was_paused": was_paused})
    else:
        click.echo(f"lane {target} goes on" if was_paused else f"lane {target} was not paused")
