"""`freehold doctor`: checks of the store."""

from __future__ import annotations

import click

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.render import diagnosis_table, show
from freehold.errors import FreeholdError
from freehold.store.database import Diagnosis


@click.command(cls=StoreCommand)
@as_json
@store_options
def doctor(store: StoreChoice, as_json: bool) -> None:
    """Check the store. Exits with 1 if something is wrong."""
    with store.open() as app:
        diagnoses = [*app._database.diagnose(), *_moves(app)]
        where = app._database.shown
    good = all(each.good for each in diagnoses)
    if as_json:
        print_json({"store": where, "good": good, "diagnoses": diagnoses})
    else:
        show(diagnosis_table(where, diagnoses))
    if not good:
        raise click.exceptions.Exit(REFUSED)


def _moves(app: Freehold) -> list[Diagnosis]:
    """Moves of tenants whose process has died. A store that cannot be read has failed already."""
    try:
        found = app.tenants.interrupted_moves()
    except FreeholdError:
        return []
    return [Diagnosis("moves of tenants", good=False, detail=each) for each in found]
