"""`freehold job`: inspect and control jobs by their ids."""

from __future__ import annotations

from collections.abc import Callable

import click

from freehold.cli.bulk_view import preview_text
from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    by_option,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.errors import REFUSED
from freehold.cli.job_view import job_view
from freehold.cli.render import causes_text, is_too_late, result_sentence, show
from freehold.json_views import job_detail_document
from freehold.model.audit import CLI, Author
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.operator import ActionPreview, Operator

IDS = click.argument("ids", type=int, nargs=-1, required=True, metavar="ID...")


@click.group(cls=StoreGroup)
def job() -> None:
    """Inspect and control jobs by their ids."""


@job.command("show")
@IDS
@click.option("--args", "show_args", is_flag=True, help="Show the arguments; they can be private.")
@click.option(
    "--trace",
    "show_trace",
    is_flag=True,
    help="Show the tracebacks of errors; --json always has them.",
)
@as_json
@store_options
def show_jobs(
    store: StoreChoice, ids: tuple[int, ...], show_args: bool, show_trace: bool, as_json: bool
) -> None:
    """Show jobs with their timeline."""
    with store.open() as app:
        details = [app.operator.show(job_id) for job_id in ids]
        now = app.operator.now()
    if as_json:
        print_json([job_detail_document(detail, show_args=show_args) for detail in details])
        return
    for detail in details:
        show(job_view(detail, now, show_args=show_args, show_trace=show_trace))


@job.command()
@IDS
@as_json
@store_options
def explain(store: StoreChoice, ids: tuple[int, ...], as_json: bool) -> None:
    """Explain why jobs do not run, and what to do."""
    with store.open() as app:
        causes = {job_id: app.operator.explain(job_id) for job_id in ids}
    if as_json:
        print_json([{"id": job_id, "causes": found} for job_id, found in causes.items()])
        return
    for job_id, found in causes.items():
        show(causes_text(job_id, found))


_dry_run = click.option(
    "--dry-run", is_flag=True, help="Only show what would happen; change nothing."
)


def _show_preview(verb: str, preview: ActionPreview, as_json: bool) -> None:
    if as_json:
        print_json(preview)
    else:
        click.echo(preview_text(verb, preview.counts))


Act = Callable[..., None]


def _no_more(act: Act) -> Act:
    return act


def _action(
    verb: OperatorVerb,
    method: Callable[..., list[ActionResult]],
    help: str,
    more: Callable[[Act], Act] = _no_more,
) -> None:
    """``more``: options that only this verb has."""

    @job.command(verb.value, help=help)
    @IDS
    @more
    @click.option("--reason", help="Reason, for the history.")
    @by_option
    @_dry_run
    @as_json
    @store_options
    def act(
        store: StoreChoice,
        ids: tuple[int, ...],
        reason: str | None,
        by: str,
        dry_run: bool,
        as_json: bool,
        **own: str | None,
    ) -> None:
        if dry_run and any(own.values()):
            raise click.UsageError("--dry-run and --from exclude each other: leave one out.")
        with store.open() as app:
            if dry_run:
                _show_preview(verb, app.operator.preview(verb, ids), as_json)
                return
            results = method(app.operator, *ids, by=by, reason=reason, via=CLI, **own)
        if as_json:
            print_json(results)
        else:
            click.echo("\n".join(result_sentence(verb, result) for result in results))
        if any(is_too_late(verb, result) for result in results):
            raise click.exceptions.Exit(REFUSED)


_action(
    OperatorVerb.CANCEL,
    Operator.cancel,
    "Cancel jobs. The worker of a running job is asked to stop it. A failed job counts as resolved "
    "and no longer blocks its lane. Exits with 1 if a job had already succeeded.",
)
_action(
    OperatorVerb.PAUSE,
    Operator.pause,
    "Pause jobs until they are resumed. The worker of a running job is asked to stop it.",
)
_action(OperatorVerb.RESUME, Operator.resume, "Resume paused or failed jobs.")
_action(
    OperatorVerb.RETRY,
    Operator.retry,
    "Run finished jobs again, with all their attempts.",
    click.option(
        "--from",
        "from_step",
        metavar="STEP",
        help="Run one finished or paused job again from this step: it and the later steps are "
        "deleted.",
    ),
)
_action(
    OperatorVerb.SUBMIT,
    Operator.submit,
    "Put pending jobs into the queue.",
)


@job.command()
@IDS
@author_options
@_dry_run
@as_json
@store_options
def delete(
    store: StoreChoice, ids: tuple[int, ...], author: Author, dry_run: bool, as_json: bool
) -> None:
    """Delete waiting or finished jobs. Their events and log lines go too. A job that a worker holds
    is refused: cancel it first. If one is refused, none is deleted."""
    with store.open() as app:
        if dry_run:
            _show_preview("delete", app.operator.preview("delete", ids), as_json)
            return
        app.operator.delete(*ids, **change_by(author))
    if as_json:
        print_json({"deleted": ids})
    else:
        click.echo("\n".join(f"job {job_id} is deleted" for job_id in ids))
