"""`freehold enqueue`: one job, from a shell or a cron tab."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from freehold.app import Freehold
from freehold.cli.arguments import arguments
from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.types import moment, span
from freehold.client import JobHandle
from freehold.model.job import NewJob
from freehold.tasks import Options, raw_job


@click.command()
@click.argument("task")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "json_text", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--queue", help="Instead of the task's own queue.")
@click.option("--priority", type=int, help="Higher runs first.")
@click.option(
    "--delay", type=span, metavar="SPAN", help="Not before so much time has passed: 90, 5m, 2h, 1d."
)
@click.option(
    "--run-at", type=moment, metavar="TIME", help="Not before this time: 2030-01-31T12:00:00Z."
)
@click.option("--target", help="The lane: jobs with one target run one by one, in order.")
@click.option("--limit-key", help="Jobs with this key share its limit: see `freehold limits`.")
@click.option("--unique-key", help="At most one live job has this key.")
@click.option("--idempotency-key", help="Repeating the command with it makes no second job.")
@click.option("--max-attempts", type=int, help="How often it may be tried.")
@click.option("--timeout", type=span, metavar="SPAN", help="How long one attempt may take.")
@click.option("--tag", "tags", multiple=True, help="For finding it again; repeatable.")
@click.option("--pending", is_flag=True, help="Store it, but do not put it into the queue yet.")
@as_json
@store_options
def enqueue(
    store: StoreChoice,
    task: str,
    pairs: tuple[str, ...],
    json_text: str | None,
    tags: tuple[str, ...],
    pending: bool,
    as_json: bool,
    **given: str | float | datetime | None,
) -> None:
    """Enqueue a job of TASK.

    A VALUE is JSON if it reads as JSON, else text: n=5 is a number, n='"5"' and name=Ann are
    texts. With --app the arguments are checked against the task's signature, and the task's own
    options apply; without, they are checked only as JSON.
    """
    options = {name: value for name, value in given.items() if value is not None}
    if tags:
        options["tags"] = tags  # type: ignore[assignment]
    data = arguments(task, json_text, pairs)
    new = _new_job(store.app, task, data, options, pending)
    with store.open(may_create=True) as app:
        handle = app.submit(new)
    if as_json:
        print_json({"id": handle.id, "task": handle.task, "created": handle.created})
    else:
        click.echo(_sentence(handle, new))


def _new_job(
    app: Freehold | None, task: str, data: bytes, options: dict[str, Any], pending: bool
) -> NewJob:
    if app is None:
        return raw_job(task, Options(**options), data, pending)
    return app.tasks.get(task).using(**options).prepare_json(data, pending=pending)


def _sentence(handle: JobHandle, new: NewJob) -> str:
    if not handle.created:
        return f"job {handle.id} was there already, by its key; no new one was made"
    if new.pending:
        return f"job {handle.id} of {new.task} is stored and pending"
    return f"job {handle.id} of {new.task} is in queue {new.queue}"
