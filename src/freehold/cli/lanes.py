"""`freehold lanes`: one at a time each; how deep, who is at the head, and what blocks it."""

from __future__ import annotations

from datetime import datetime

import click

from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import lane_table, show


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
@pause_options
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
    print_paused("lane", "target", target, until, as_json)


@lanes.command()
@click.argument("target")
@as_json
@store_options
def resume(store: StoreChoice, target: str, as_json: bool) -> None:
    """Let the lane TARGET go on."""
    with store.open() as app:
        was_paused = app.operate.resume_lane(target)
    print_resumed("lane", "target", target, was_paused, as_json)
