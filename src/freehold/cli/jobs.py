"""`freehold jobs`: a page of jobs, newest first."""

from __future__ import annotations

from typing import Any

import click

from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.job_filter import filter_options, job_filter
from freehold.cli.render import job_table, show
from freehold.json_views import job_document
from freehold.model.state import Stage, State
from freehold.store.types import PAGE_LIMIT

_READY = (Stage.READY, Stage.LANE_HEAD)


@click.command(cls=StoreCommand)
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
def jobs(store: StoreChoice, show_args: bool, as_json: bool, **fields: Any) -> None:
    """List jobs, newest first."""
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
