"""`freehold queues`: depth, pause and weight of queues."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches

import click

from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import queue_table, queue_view, show
from freehold.errors import BadInput
from freehold.model.audit import CLI, Author
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


@queues.command("show")
@click.argument("name")
@as_json
@store_options
def show_queue(store: StoreChoice, name: str, as_json: bool) -> None:
    """Show the queue NAME. Its jobs are counted up to 10,000, in the list up to 1,000."""
    with store.open() as app:
        found, now = app.operator.queue(name), app.operator.now()
    if as_json:
        print_json({"queue": found})
    elif found is None:
        click.echo(f"queue {name} has no live jobs and no settings")
    else:
        show(queue_table([found], now))


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
        known = [each.name for each in app.operator.queues(bound=1)]
        app.operator.pause_queue(name, by, reason, until, via=CLI)
    print_paused("queue", "name", name, until, as_json)
    if name not in (*known, ALL_QUEUES):
        click.echo(f"freehold: {_unknown(name, known)}", err=True)


@queues.command()
@click.argument("name")
@author_options
@as_json
@store_options
def resume(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Resume the queue NAME."""
    _refuse_all_of_a_tenant(store, name, "resume")
    with store.open() as app:
        was_paused = app.operator.resume_queue(name, **change_by(author))
    print_resumed("queue", "name", name, was_paused, as_json)


@queues.command("set-weight")
@click.argument("name")
@click.argument("weight", type=float)
@author_options
@as_json
@store_options
def set_weight(store: StoreChoice, name: str, weight: float, author: Author, as_json: bool) -> None:
    """Set the weight of the queue NAME. A queue of weight 2 gets twice the share of a queue of
    weight 1, which is the default."""
    with store.open() as app:
        app.operator.set_weight(name, weight, **change_by(author))
    if as_json:
        print_json({"name": name, "weight": weight})
    else:
        click.echo(f"queue {name} has weight {weight:g}")


def _unknown(name: str, known: list[str]) -> str:
    """For a mistyped name: the queue that was meant goes on running."""
    close = get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return (
        f"there is no queue {name} yet: it has no live jobs and no settings; {meant}"
        f"`freehold queues resume {name}` removes the pause"
    )


def _refuse_all_of_a_tenant(store: StoreChoice, name: str, verb: str) -> None:
    """A tenant's state is in the directory too, and only `tenants` writes both."""
    if name == ALL_QUEUES and store.tenant is not None:
        raise BadInput(
            f"to {verb} all queues of a tenant, use freehold tenants {verb} {store.tenant}"
        )
