"""`freehold enqueue`: one job, from a shell or a crontab."""

from __future__ import annotations

from typing import Any

import click

from freehold.app import Freehold
from freehold.cli.arguments import arguments
from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.types import duration, timestamp, timestamp_or_duration
from freehold.client import JobHandle
from freehold.model.job import NewJob
from freehold.model.meta import meta_of
from freehold.model.options import Options
from freehold.model.waiting import REPLACEABLE, with_waiting_options
from freehold.tasks import raw_job, with_secrets

#: A misspelled name would show only when a worker parks the job.
_UNCHECKED = "; without --app neither its task nor its arguments were checked"


@click.command(cls=StoreCommand)
@click.argument("task")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "json_text", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--queue", help="Queue, if not the task's own.")
@click.option("--priority", type=int, help="Priority; higher runs first.")
@click.option(
    "--delay", type=duration, metavar="TIME", help="Delay before it may run: 90, 5m, 2h, 1d."
)
@click.option(
    "--run-at", type=timestamp, metavar="TIME", help="Earliest start: 2030-01-31T12:00:00Z."
)
@click.option(
    "--start-by",
    type=timestamp_or_duration,
    metavar="TIME",
    help="Cancel it if it has not started by then: a time, or 90, 5m, 2h after it falls due.",
)
@click.option("--target", help="Lane: jobs with one target run one at a time, in order.")
@click.option("--limit-key", help="Jobs with this key share its limit: see `freehold limits`.")
@click.option("--unique-key", help="At most one live job has this key.")
@click.option(
    "--unique-until",
    type=click.Choice(["end", "start"]),
    help="start: until a worker takes the job with the unique key.",
)
@click.option(
    "--replace",
    multiple=True,
    type=click.Choice(REPLACEABLE),
    help="What changes in the job that waits with the unique key; repeatable.",
)
@click.option("--debounce-key", help="One job waits with this key, until no call came for a while.")
@click.option("--debounce-seconds", type=duration, metavar="TIME", help="How long: 90, 5m.")
@click.option(
    "--debounce-at-most-seconds", type=duration, metavar="TIME", help="But at most so long."
)
@click.option("--throttle-key", help="Jobs with this key become due one at a time.")
@click.option("--throttle-seconds", type=duration, metavar="TIME", help="And this far apart.")
@click.option("--idempotency-key", help="Repeating the command with this key adds no second job.")
@click.option("--max-attempts", type=int, help="Maximum number of attempts.")
@click.option("--timeout", type=duration, metavar="TIME", help="Maximum time of one attempt.")
@click.option("--tag", "tags", multiple=True, help="Tag to find it by; repeatable.")
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="KEY",
    help="An argument that is shown nowhere; repeatable. --app knows those of its tasks.",
)
@click.option(
    "--meta", "meta_pairs", multiple=True, metavar="KEY=VALUE", help="Metadata; repeatable."
)
@click.option("--pending", is_flag=True, help="Store the job without putting it into the queue.")
@as_json
@store_options
def enqueue(
    store: StoreChoice,
    task: str,
    pairs: tuple[str, ...],
    json_text: str | None,
    tags: tuple[str, ...],
    secrets: tuple[str, ...],
    meta_pairs: tuple[str, ...],
    pending: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Enqueue a job of TASK.

    A VALUE is JSON if it parses as JSON, else text: n=5 is a number, n='"5"' and name=Ann are
    text. With --app the arguments are checked against the task's signature, and the task's own
    options apply. Without it they are only checked as JSON.
    """
    options = with_waiting_options(given)
    if tags:
        options["tags"] = tags
    if meta_pairs:
        options["meta"] = meta_of(meta_pairs)
    data = arguments(task, json_text, pairs)
    new = with_secrets(_new_job(store.app, task, data, options, pending), secrets)
    with store.open(may_create=True) as app:
        handle = app._submit(new)
    if as_json:
        print_json(
            {
                "id": handle.id,
                "task": handle.task,
                "created": handle.created,
                "replaced": handle.replaced,
                "created_at": handle.created_at,
            }
        )
    else:
        click.echo(_sentence(handle, new) + ("" if store.app or not handle.created else _UNCHECKED))


def _new_job(
    app: Freehold | None, task: str, data: bytes, options: dict[str, Any], pending: bool
) -> NewJob:
    if app is None:
        return raw_job(task, Options(**options), data, pending)
    return app.tasks.get(task).using(**options).prepare_json(data, pending=pending)


def _sentence(handle: JobHandle, new: NewJob) -> str:
    if handle.replaced:
        return f"job {handle.id} waits with this key, and got the values of this call"
    if not handle.created:
        return f"job {handle.id} exists already with this key; no job was added"
    if new.pending:
        return f"job {handle.id} of {new.task} is stored and pending"
    return f"job {handle.id} of {new.task} is in queue {new.queue}"
