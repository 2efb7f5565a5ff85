"""`freehold workers`: who is at work."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.render import show, worker_table


@click.command()
@as_json
@store_options
def workers(store: StoreChoice, as_json: bool) -> None:
    """List the workers that were heard lately, with what they have in hand.

    A worker says every 10 s that it lives, every 2 s while it works; after 30 s without a word
    it is listed no more.
    """
    with store.open() as app:
        found = app.operate.workers()
        now = app.operate.now()
    if as_json:
        print_json({"workers": found})
    else:
        show(worker_table(found, now))
