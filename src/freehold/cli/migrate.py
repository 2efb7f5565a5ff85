"""`freehold migrate`: the store's schema."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.progress import progress
from freehold.store.database import Database, Migration


@click.command(cls=StoreCommand)
@click.option("--plan", is_flag=True, help="Show what would be applied; change nothing.")
@click.option(
    "--sql",
    is_flag=True,
    help="Print the SQL instead of running it; with --plan, only what is pending.",
)
@as_json
@store_options
def migrate(store: StoreChoice, plan: bool, sql: bool, as_json: bool) -> None:
    """Create or update the store's schema.

    It is safe to repeat, to run several times at once, and to kill: each migration is applied
    wholly or not at all.
    """
    with store.open(may_create=not (plan or sql)) as app:
        database = app._database
        if sql:
            steps = database.pending() if plan else database.migration_sql()
        else:
            steps = database.pending() if plan else _migrated(database, quiet=as_json)
        where = database.shown
    if as_json:
        print_json({"store": where, "applied": not (plan or sql), "migrations": steps})
    elif sql:
        click.echo("\n".join(_script(step) for step in steps), nl=False)
    else:
        click.echo(_sentence(where, steps, "would apply" if plan else "applied"))


def _migrated(database: Database, *, quiet: bool) -> list[Migration]:
    """Migrates, which can wait for locks and for another process that is migrating."""
    with progress(f"migrating {database.shown}", quiet=quiet):
        return database.migrate()


def _script(step: Migration) -> str:
    return f"-- {_title(step)}\nbegin;\n{step.sql.strip()}\ncommit;\n"


def _sentence(where: str, steps: list[Migration], done: str) -> str:
    if not steps:
        return f"{where} is up to date"
    return "\n".join(f"{where}: {done} {_title(step)}" for step in steps)


def _title(step: Migration) -> str:
    return f"{step.version:04} {step.name}"
