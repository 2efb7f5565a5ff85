"""`freehold workers`: the live workers."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.render import show, worker_table


@click.command(cls=StoreCommand)
@as_json
@store_options
def workers(store: StoreChoice, as_json: bool) -> None:
    """List the live workers.

    A worker sends a heartbeat every 10 s, and every 2 s while it runs jobs. After 30 s without
    a heartbeat it is not listed any more.
    """
    with store.open() as app:
        found = app.operator.workers()
        now = app.operator.now()
    if as_json:
        print_json({"workers": found})
    else:
        show(worker_table(found, now))
