"""`freehold job amend` and `freehold job clone`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from freehold.app import Freehold
from freehold.cli.common import (
    StoreChoice,
    as_json,
    author_options,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.job import IDS, job
from freehold.cli.types import timestamp_or_age
from freehold.model.audit import Author
from freehold.model.bulk import Amendment
from freehold.operator import CloneChanges

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--priority", type=int, help="Another priority."),
    click.option("--to-queue", "queue", metavar="NAME", help="Another queue."),
    click.option(
        "--run-at",
        type=timestamp_or_age,
        metavar="TIME",
        help="Another time: 2030-01-31T12:00:00Z, or from now: 90s, 5m, 2h, 1d.",
    ),
    click.option("--max-attempts", type=int, help="Another number of attempts."),
)


def _edit_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@job.command()
@IDS
@_edit_options
@author_options
@as_json
@store_options
def amend(
    store: StoreChoice, ids: tuple[int, ...], author: Author, as_json: bool, **fields: Any
) -> None:
    """Change options of waiting jobs. The options below are those that can change. If one job is
    refused, none is changed."""
    with store.open() as app:
        changes = Amendment(**_with_time(app, fields))
        results = app.operator.amend(*ids, changes=changes, **change_by(author))
    if as_json:
        print_json(results)
    else:
        click.echo("\n".join(f"job {result.id} is amended" for result in results))


@job.command()
@click.argument("job_id", type=int, metavar="ID")
@click.option("--args", metavar="JSON", help="Other arguments: one object by parameter name.")
@_edit_options
@author_options
@as_json
@store_options
def clone(store: StoreChoice, job_id: int, author: Author, as_json: bool, **fields: Any) -> None:
    """Enqueue a new job like the job ID. Other arguments are checked if --app has the task."""
    with store.open() as app:
        changes = CloneChanges(**_with_time(app, fields))
        made = app.operator.clone(job_id, changes, **change_by(author))
    if as_json:
        print_json({"id": made.id, "cloned_from": job_id})
    else:
        click.echo(f"job {made.id} is a clone of job {job_id}")


def _with_time(app: Freehold, fields: dict[str, Any]) -> dict[str, Any]:
    """A span of time is counted from the store's clock."""
    at: datetime | timedelta | None = fields["run_at"]
    return {**fields, "run_at": app.operator.now() + at if isinstance(at, timedelta) else at}
