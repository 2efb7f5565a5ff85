"""`freehold bulk`: bulk operations, their progress, stop and resume."""

from __future__ import annotations

import click

from freehold.cli.bulk_view import operation_table, operation_text
from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    print_json,
    store_options,
)
from freehold.cli.render import show
from freehold.model.audit import Author
from freehold.store.types import PAGE_LIMIT

_ID = click.argument("operation", type=int, metavar="ID")


@click.group(cls=StoreGroup, invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, PAGE_LIMIT), default=50, show_default=True)
@click.option("--before", type=int, help="Next page: the last id of this one.")
@as_json
@store_options
@click.pass_context
def bulk(
    context: click.Context, store: StoreChoice, limit: int, before: int | None, as_json: bool
) -> None:
    """List bulk operations, newest first. `freehold jobs ... retry` starts one."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operator.bulk.list(before, limit)
        now = app.operator.now()
    if as_json:
        print_json({"operations": found})
    else:
        show(operation_table(found, now))


@bulk.command("show")
@_ID
@as_json
@store_options
def show_operation(store: StoreChoice, operation: int, as_json: bool) -> None:
    """Show a bulk operation and its progress."""
    with store.open() as app:
        found = app.operator.bulk.show(operation)
        now = app.operator.now()
    if as_json:
        print_json(found)
    else:
        show(operation_text(found, now))


@bulk.command()
@_ID
@author_options
@as_json
@store_options
def stop(store: StoreChoice, operation: int, author: Author, as_json: bool) -> None:
    """Stop a bulk operation. No job is changed by it until it is resumed."""
    with store.open() as app:
        operator = app.operator.through(author.via)
        found = operator.bulk.stop(operation, by=author.by, reason=author.reason)
    if as_json:
        print_json(found)
    else:
        click.echo(f"bulk operation {operation} is {found.state}; {found.left} jobs are left")


@bulk.command()
@_ID
@author_options
@as_json
@store_options
def resume(store: StoreChoice, operation: int, author: Author, as_json: bool) -> None:
    """Continue a stopped bulk operation. Jobs that it has reached are not changed again."""
    with store.open() as app:
        operator = app.operator.through(author.via)
        found = operator.bulk.resume(operation, by=author.by, reason=author.reason)
    if as_json:
        print_json(found)
    else:
        click.echo(f"bulk operation {operation} is {found.state}; {found.left} jobs are left")
