"""`freehold queues`: depth, pause and weight of queues."""

from __future__ import annotations

from datetime import datetime

import click

from freehold.cli.common import StoreChoice, StoreGroup, as_json, print_json, store_options
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import queue_view, show
from freehold.errors import BadInput
from freehold.model.limit import ALL_QUEUES


@click.group(cls=StoreGroup, invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def queues(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List queues; pause, resume and weight them."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operator.queues()
        counts, pause = app.operator.counts(), app.operator.pause_of_all()
        now = app.operator.now()
    if as_json:
        print_json({"queues": found, "counts": counts, "pause": pause})
    else:
        show(queue_view(found, counts, pause, now))


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
    """Pause the queue NAME. Its jobs are not claimed; running jobs continue."""
    _refuse_all_of_a_tenant(store, name, "pause")
    with store.open() as app:
        app.operator.pause_queue(name, by, reason, until)
    print_paused("queue", "name", name, until, as_json)


@queues.command()
@click.argument("name")
@as_json
@store_options
def resume(store: StoreChoice, name: str, as_json: bool) -> None:
    """Resume the queue NAME."""
    _refuse_all_of_a_tenant(store, name, "resume")
    with store.open() as app:
        was_paused = app.operator.resume_queue(name)
    print_resumed("queue", "name", name, was_paused, as_json)


@queues.command("set-weight")
@click.argument("name")
@click.argument("weight", type=float)
@as_json
@store_options
def set_weight(store: StoreChoice, name: str, weight: float, as_json: bool) -> None:
    """Set the weight of the queue NAME. A queue of weight 2 gets twice the share of a queue of
    weight 1, which is the default."""
    with store.open() as app:
        app.operator.set_weight(name, weight)
    if as_json:
        print_json({"name": name, "weight": weight})
    else:
        click.echo(f"queue {name} has weight {weight:g}")


def _refuse_all_of_a_tenant(store: StoreChoice, name: str, verb: str) -> None:
    """A tenant's state is in the directory too, and only `tenants` writes both."""
    if name == ALL_QUEUES and store.tenant is not None:
        raise BadInput(
            f"to {verb} all queues of a tenant, use freehold tenants {verb} {store.tenant}"
        )
