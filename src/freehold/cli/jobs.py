"""`freehold jobs`: a page of jobs, newest first; or one verb on all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from freehold.app import Freehold
from freehold.cli.bulk_view import operation_text, preview_text
from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    print_json,
    store_options,
)
from freehold.cli.job_filter import filter_options, job_filter
from freehold.cli.render import job_table, show
from freehold.cli.types import timestamp_or_age
from freehold.errors import BadInput
from freehold.json_views import job_document
from freehold.model.audit import Author
from freehold.model.bulk import Amendment, BulkOperation, BulkPreview, BulkVerb
from freehold.model.state import Stage, State
from freehold.store.types import PAGE_LIMIT, JobFilter

_READY = (Stage.READY, Stage.LANE_HEAD)


class SearchGroup(StoreGroup):
    """A group whose first argument can be a search, which has a colon, as no command does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        search = []
        while (rest := self.make_parser(ctx).parse_args(list(args))[1]) and ":" in rest[0]:
            search.append(rest[0])
            args = [*args[: len(args) - len(rest)], *rest[1:]]
        found = super().parse_args(ctx, args)
        ctx.params["search"] = " ".join(search)
        return found


@click.group(
    cls=SearchGroup,
    invoke_without_command=True,
    subcommand_metavar="[SEARCH] [COMMAND [ARGS]...]",
)
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(1, PAGE_LIMIT),
    default=50,
    show_default=True,
    help="Jobs on one page.",
)
@click.option("--before", type=int, help="Next page: the number printed below this one.")
@click.option("--args", "show_args", is_flag=True, help="With --json: include the arguments.")
@as_json
@store_options
@click.pass_context
def jobs(
    context: click.Context, /, store: StoreChoice, show_args: bool, as_json: bool, **fields: Any
) -> None:
    """List jobs, newest first. SEARCH is another way to write the filter, such as
    "state:failed,canceled queue:mail since:2h". With a command, change all jobs of the filter: more
    than 100 become a bulk operation, which the workers carry out."""
    if context.invoked_subcommand is not None:
        context.obj = (store, fields)
        return
    with store.open() as app:
        page = app.operator.jobs(job_filter(app, fields))
        waiting = [job.target for job in page.jobs if job.state is State.QUEUED and job.target]
        holders = {} if as_json else app.operator.lane_holders(waiting)
        ready = [job.queue for job in page.jobs if job.stage in _READY]
        waits = {} if as_json else app.operator.queue_waits(ready)
        now = app.operator.now()
    if as_json:
        found = [job_document(job, show_args=show_args) for job in page.jobs]
        print_json({"jobs": found, "next": page.next, "looked_until": page.looked_until})
    else:
        show(job_table(page, holders, waits, now))


_yes = click.option("--yes", is_flag=True, help="Do not ask. Needed with --json.")
_dry_run = click.option("--dry-run", is_flag=True, help="Only count, by cause; change nothing.")


def _verb(verb: BulkVerb, help: str) -> None:
    @jobs.command(verb.value, help=help)
    @_yes
    @_dry_run
    @author_options
    @as_json
    @store_options
    @click.pass_obj
    def change(given: tuple[StoreChoice, dict[str, Any]], /, **options: Any) -> None:
        _change_all(given, verb, lambda _app: None, **options)


_verb(BulkVerb.CANCEL, "Cancel all of them. The workers of running jobs are asked to stop them.")
_verb(BulkVerb.PAUSE, "Pause all of them until they are resumed.")
_verb(BulkVerb.RESUME, "Resume all paused or failed ones.")
_verb(BulkVerb.RETRY, "Run all finished ones again. The filter must name the states.")
_verb(BulkVerb.DELETE, "Delete all of them. Those that a worker holds are refused.")


@jobs.command()
@click.option("--priority", type=int, help="Another priority.")
@click.option("--to-queue", "queue", metavar="NAME", help="Another queue.")
@click.option(
    "--run-at",
    type=timestamp_or_age,
    metavar="TIME",
    help="Another time: 2030-01-31T12:00:00Z, or from now: 90s, 5m, 2h, 1d.",
)
@_yes
@_dry_run
@author_options
@as_json
@store_options
@click.pass_obj
def amend(
    given: tuple[StoreChoice, dict[str, Any]],
    /,
    priority: int | None,
    queue: str | None,
    run_at: datetime | timedelta | None,
    **options: Any,
) -> None:
    """Change priority, queue or time of waiting ones."""

    def changes(app: Freehold) -> Amendment:
        at = app.operator.now() + run_at if isinstance(run_at, timedelta) else run_at
        return Amendment(priority, queue, at)

    _change_all(given, BulkVerb.AMEND, changes, **options)


def _change_all(
    given: tuple[StoreChoice, dict[str, Any]],
    verb: BulkVerb,
    changes: Callable[[Freehold], Amendment | None],
    *,
    store: StoreChoice,
    yes: bool,
    dry_run: bool,
    author: Author,
    as_json: bool,
) -> None:
    if as_json and not (yes or dry_run):
        raise BadInput("--json cannot ask: add --yes, or --dry-run to count only")
    chosen, fields = given
    with store.or_else(chosen).open() as app:
        filter = job_filter(app, fields)
        amendment = changes(app)
        if dry_run or not yes:
            preview = app.operator.bulk.preview(verb, filter, amendment)
            _show_preview(verb, preview, as_json)
            if dry_run or not preview.jobs or not click.confirm("go on?"):
                return
        operation = _start(app, verb, filter, amendment, author)
        now = app.operator.now()
    if as_json:
        print_json(operation)
    else:
        show(operation_text(operation, now))


def _show_preview(verb: BulkVerb, preview: BulkPreview, as_json: bool) -> None:
    if as_json:
        print_json(preview)
    else:
        click.echo(preview_text(verb, preview))


def _start(
    app: Freehold, verb: BulkVerb, filter: JobFilter, changes: Amendment | None, author: Author
) -> BulkOperation:
    operator = app.operator.through(author.via)
    return operator.bulk.start(verb, filter, changes, by=author.by, reason=author.reason)
