"""`freehold doctor`: checks of the store, and of jobs that cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import click

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.render import diagnosis_table, show
from freehold.errors import FreeholdError
from freehold.model.findings import RULES, Finding, Level
from freehold.operator import Operator
from freehold.store.database import Diagnosis

#: Findings of one rule on its line.
_SHOWN = 5


@click.command(cls=StoreCommand)
@click.option("--deep", is_flag=True, help="Also read the whole file of SQLite, to find damage.")
@as_json
@store_options
def doctor(store: StoreChoice, deep: bool, as_json: bool) -> None:
    """Check the store and its jobs. Exits with 1 if something is wrong."""
    with store.open() as app:
        diagnoses = [*app._database.diagnose(deep=deep), *_moves(app)]
        if all(each.good for each in diagnoses if each.name == "schema"):
            diagnoses += _job_checks(app.operator)
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


def _job_checks(operator: Operator) -> Iterator[Diagnosis]:
    """By the rules of the findings, of which only errors fail."""
    facts = operator.finding_facts()
    for rule in RULES:
        found = list(rule.find(facts))
        if found:
            good = all(each.level is not Level.ERROR for each in found)
            yield Diagnosis(rule.check, good, "; ".join(map(_text, found[:_SHOWN])))
        elif rule.good is not None:
            yield Diagnosis(rule.check, True, rule.good)


def _text(finding: Finding) -> str:
    if finding.level is Level.NOTICE:
        return finding.text
    return f"{finding.text}: {finding.advice}"
