"""`freehold job`: look at jobs by their ids, and say what should become of them."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, as_json, by_option, print_json, store_options
from freehold.cli.job_view import job_view
from freehold.cli.render import answer_sentence, causes_text, show
from freehold.json_views import job_detail_document
from freehold.model.operator_actions import OperatorVerb

_IDS = click.argument("ids", type=int, nargs=-1, required=True, metavar="ID...")


@click.group()
def job() -> None:
    """Show, explain, cancel, pause, resume or retry jobs by their ids."""


@job.command("show")
@_IDS
@click.option("--args", "show_args", is_flag=True, help="Show the arguments; they can be private.")
@click.option("--trace", "show_trace", is_flag=True, help="Show the tracebacks of errors.")
@as_json
@store_options
def show_jobs(
    store: StoreChoice, ids: tuple[int, ...], show_args: bool, show_trace: bool, as_json: bool
) -> None:
    """Show jobs: state, lease, attempts, report, and all that happened to them."""
    with store.open() as app:
        stories = [app.operate.show(job_id) for job_id in ids]
        now = app.operate.now()
    if as_json:
        print_json([job_detail_document(story, show_args=show_args) for story in stories])
        return
    for story in stories:
        show(job_view(story, now, show_args=show_args, show_trace=show_trace))


@job.command()
@_IDS
@as_json
@store_options
def explain(store: StoreChoice, ids: tuple[int, ...], as_json: bool) -> None:
    """Say why jobs are not running, and what to do about it."""
    with store.open() as app:
        causes = {job_id: app.operate.explain(job_id) for job_id in ids}
    if as_json:
        print_json([{"id": job_id, "causes": found} for job_id, found in causes.items()])
        return
    for job_id, found in causes.items():
        show(causes_text(job_id, found))


def _operation(verb: OperatorVerb, help: str) -> None:
    @job.command(verb.value, help=help)
    @_IDS
    @click.option("--reason", help="Why; it is kept with the job.")
    @by_option
    @as_json
    @store_options
    def act(
        store: StoreChoice, ids: tuple[int, ...], reason: str | None, by: str, as_json: bool
    ) -> None:
        with store.open() as app:
            answers = app.operate.act(verb, ids, by, reason)
        if as_json:
            print_json(answers)
        else:
            click.echo("\n".join(answer_sentence(verb, answer) for answer in answers))


_operation(
    OperatorVerb.CANCEL, "End jobs; one that runs is asked to stop. For a failed one: resolved."
)
_operation(
    OperatorVerb.PAUSE, "Hold jobs back until they are resumed; one that runs is asked to stop."
)
_operation(OperatorVerb.RESUME, "Let paused or failed jobs go on.")
_operation(OperatorVerb.RETRY, "Run finished jobs again, with all their attempts.")
