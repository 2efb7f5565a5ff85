"""`freehold retention`: after how long finished jobs are deleted, by queue and by task."""

from __future__ import annotations

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
from freehold.model.audit import Author
from freehold.store.types import RetentionKind


@click.group(cls=StoreGroup, invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def retention(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List queues and tasks with their own retention. All others have retention.history_days."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        rules = app.operator.retention_rules()
    if as_json:
        print_json({"rules": rules})
        return
    for rule in rules:
        click.echo(f"{rule.kind} {rule.name}: {rule.days:g} days")
    if not rules:
        click.echo("no queue and no task has a retention of its own")


def _command(kind: RetentionKind) -> None:
    @retention.command(
        kind.value,
        help=f"Delete finished jobs of {kind} NAME after DAYS. Without DAYS the rule is removed.",
    )
    @click.argument("name")
    @click.argument("days", type=float, required=False)
    @author_options
    @as_json
    @store_options
    def set_rule(
        store: StoreChoice, name: str, days: float | None, author: Author, as_json: bool
    ) -> None:
        with store.open() as app:
            app.operator.set_retention(kind, name, days, **change_by(author))
        if as_json:
            print_json({"kind": kind, "name": name, "days": days})
        elif days is None:
            click.echo(f"{kind} {name} has no retention of its own")
        else:
            click.echo(f"finished jobs of {kind} {name} are deleted after {days:g} days")


for _kind in RetentionKind:
    _command(_kind)
