"""`freehold lanes`: depth, head and pause of lanes, and what blocks them."""

from __future__ import annotations

from datetime import datetime

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
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import job_table, lane_table, show
from freehold.json_views import job_document
from freehold.model.audit import CLI, Author
from freehold.store.types import JobPage


@click.group(cls=StoreGroup, invoke_without_command=True)
@click.option("--after", default="", metavar="TARGET", help="Next page: begin after this lane.")
@click.option("--limit", default=100, show_default=True, help="Lanes on one page.")
@as_json
@store_options
@click.pass_context
def lanes(
    context: click.Context, store: StoreChoice, after: str, limit: int, as_json: bool
) -> None:
    """List lanes; pause and resume them.

    A lane is the ordered sequence of the jobs with one target. They run one at a time.
    """
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operator.lanes(after, limit)
        now = app.operator.now()
    if as_json:
        print_json({"lanes": found, "next": found[-1].target if len(found) == limit else None})
    else:
        show(lane_table(found, now))


@lanes.command("show")
@click.argument("target")
@as_json
@store_options
def show_lane(store: StoreChoice, target: str, as_json: bool) -> None:
    """Show the lane TARGET and its first jobs. They are counted up to 10,000, in the list up to
    100."""
    with store.open() as app:
        found, now = app.operator.lane(target), app.operator.now()
        jobs = app.operator.lane_jobs(target)
    if as_json:
        print_json({"lane": found, "jobs": [job_document(job, show_args=False) for job in jobs]})
        return
    show(lane_table([found] if found else [], now))
    if jobs:
        holders = {target: jobs[0].id}
        show(job_table(JobPage(tuple(jobs), None), holders, {}, now))


@lanes.command()
@click.argument("target")
@pause_options
@as_json
@store_options
def pause(
    store: StoreChoice,
    target: str,
    reason: str | None,
    until: datetime | None,
    by: str,
    as_json: bool,
) -> None:
    """Pause the lane TARGET. Its running job continues, the next one waits."""
    with store.open() as app:
        app.operator.pause_lane(target, by, reason, until, via=CLI)
    print_paused("lane", "target", target, until, as_json)


@lanes.command()
@click.argument("target")
@author_options
@as_json
@store_options
def resume(store: StoreChoice, target: str, author: Author, as_json: bool) -> None:
    """Resume the lane TARGET."""
    with store.open() as app:
        was_paused = app.operator.resume_lane(target, **change_by(author))
    print_resumed("lane", "target", target, was_paused, as_json)
