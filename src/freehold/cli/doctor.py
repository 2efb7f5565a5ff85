"""`freehold doctor`: is everything well with the store?"""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.render import diagnosis_table, show


@click.command()
@as_json
@store_options
def doctor(store: StoreChoice, as_json: bool) -> None:
    """Look at what a person should know about the store. Fails if anything is bad."""
    with store.open() as app:
        diagnoses = app.database.diagnose()
        where = app.database.shown
    good = all(each.good for each in diagnoses)
    if as_json:
        print_json({"store": where, "good": good, "diagnoses": diagnoses})
    else:
        show(diagnosis_table(where, diagnoses))
    if not good:
        raise click.exceptions.Exit(REFUSED)
