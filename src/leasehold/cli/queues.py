"""`leasehold queues`: what waits where, and the pause of whole queues."""

from __future__ import annotations

from datetime import datetime

import click

from leasehold.cli.common import StoreChoice, as_json, by_option, print_json, store_options
from leasehold.cli.render import queue_table, show
from leasehold.cli.types import moment


@click.group(invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def queues(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List queues; `pause`, `resume` and `weigh` them. `leasehold limits` limits them."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operate.queues()
        counts = app.operate.counts()
        now = app.operate.now()
    if as_json:
        print_json({"queues": found, "counts": counts})
    else:
        show(queue_table(found, counts, now))


@queues.command()
@click.argument("name")
@click.option("--reason", help="Why; `explain` tells it to whoever asks.")
@click.option("--until", type=moment, metavar="TIME", help="Until this time: 2030-01-31T12:00:00Z.")
@by_option
@as_json
@store_options
def pause(
    store: StoreChoice,
    name: str,
    reason: str | None,
    until: datetime | None,
    by: str,
    as_json: bool,
) -> None:
    """Hold back the queue NAME: nothing of it is claimed. What runs goes on."""
    with store.open() as app:
        app.operate.pause_queue(name, by, reason, until)
    if as_json:
        print_json({"name": name, "paused": True, "until": until})
    else:
        click.echo(f"queue {name} is paused" + (f" until {until.isoformat()}" if until else ""))


@queues.command()
@click.argument("name")
@as_json
@store_options
def resume(store: StoreChoice, name: str, as_json: bool) -> None:
    """Let the queue NAME go on."""
    with store.open() as app:
        was_paused = app.operate.resume_queue(name)
    if as_json:
        print_json({"name": name, "paused": False, "was_paused": was_paused})
    else:
        click.echo(f"queue {name} goes on" if was_paused else f"queue {name} was not paused")


@queues.command()
@click.argument("name")
@click.argument("weight", type=float)
@as_json
@store_options
def weigh(store: StoreChoice, name: str, weight: float, as_json: bool) -> None:
    """Give the queue NAME its share of the workers: WEIGHT beside 1 for every other queue."""
    with store.open() as app:
        app.operate.set_weight(name, weight)
    if as_json:
        print_json({"name": name, "weight": weight})
    else:
        click.echo(f"queue {name} weighs {weight:g}")
