"""`freehold queues`: what waits where, and the pause of whole queues."""

from __future__ import annotations

from datetime import datetime

import click

from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import queue_view, show
from freehold.errors import BadInput
from freehold.model.limit import ALL_QUEUES


@click.group(invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def queues(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List queues; `pause`, `resume` and `weigh` them. `freehold limits` limits them."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operate.queues()
        counts = app.operate.counts()
        now = app.operate.now()
    if as_json:
        print_json({"queues": found, "counts": counts})
    else:
        show(queue_view(found, counts, now))


@queues.command()
@click.argument("name")
@pause_options
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
    _refuse_all_of_a_tenant(store, name, "pause")
    with store.open() as app:
        app.operate.pause_queue(name, by, reason, until)
    print_paused("queue", "name", name, until, as_json)


@queues.command()
@click.argument("name")
@as_json
@store_options
def resume(store: StoreChoice, name: str, as_json: bool) -> None:
    """Let the queue NAME go on."""
    _refuse_all_of_a_tenant(store, name, "resume")
    with store.open() as app:
        was_paused = app.operate.resume_queue(name)
    print_resumed("queue", "name", name, was_paused, as_json)


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


def _refuse_all_of_a_tenant(store: StoreChoice, name: str, verb: str) -> None:
    """Which state a tenant has stands in the directory too: only `tenants` writes both."""
    if name == ALL_QUEUES and store.tenant is not None:
        raise BadInput(f"all queues of a tenant: freehold tenants {verb} {store.tenant}")
