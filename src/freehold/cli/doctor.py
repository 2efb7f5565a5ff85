"""`freehold doctor`: checks of the store."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.render import diagnosis_table, show


@click.command(cls=StoreCommand)
@as_json
@store_options
def doctor(store: StoreChoice, as_json: bool) -> None:
    """Check the store. Exits with 1 if something is wrong."""
    with store.open() as app:
        diagnoses = app._database.diagnose()
        where = app._database.shown
    good = all(each.good for each in diagnoses)
    if as_json:
        print_json({"store": where, "good": good, "diagnoses": diagnoses})
    else:
        show(diagnosis_table(where, diagnoses))
    if not good:
        raise click.exceptions.Exit(REFUSED)
