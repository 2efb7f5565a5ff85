"""`freehold top`: queues, workers and running jobs on one screen."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, StoreCommand, store_options
from freehold.cli.render import show
from freehold.cli.text import one_line
from freehold.cli.top_view import Frame, JobRate, top_view
from freehold.errors import StoreUnavailable
from freehold.model.state import LEASED
from freehold.store.types import JobFilter

#: Leased jobs that one frame reads, to show the longest-running of them.
_LEASED_LIMIT = 200
#: The newest flows, of which open ones are shown.
_FLOW_LIMIT = 20


@click.command(cls=StoreCommand)
@click.option("--once", is_flag=True, help="Print once and exit, as into a pipe.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=1.0,
    show_default=True,
    help="Seconds between two updates.",
)
@store_options
def top(store: StoreChoice, once: bool, interval: float) -> None:
    """Watch queues, workers and running jobs.

    Ctrl-C ends it.
    """
    with store.open() as app:
        if once or not sys.stdout.isatty():
            show(top_view(_frame(app), JobRate()))
            return
        try:
            _watch(app, interval)
        except KeyboardInterrupt:
            return


def _watch(app: Freehold, interval: float) -> None:
    console, rate = Console(highlight=False), JobRate()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(top_view(_frame(app), rate, console.size), refresh=True)
            except StoreUnavailable as error:
                text = f"the store is not available, trying again: {one_line(str(error))}"
                live.update(Text(text, style="red"), refresh=True)
            # The interval of the display; no other part waits for it.
            time.sleep(interval)


def _frame(app: Freehold) -> Frame:
    operator = app.operator
    leased = operator.jobs(JobFilter(states=LEASED, limit=_LEASED_LIMIT))
    return Frame(
        store=app._database.shown,
        queues=operator.queues(),
        counts=operator.counts(),
        pause=operator.pause_of_all(),
        workers=operator.workers(),
        leased=leased.jobs,
        now=operator.now(),
        schedules=operator.schedules(),
        flow_load=operator.flow_load(),
        flows=operator.flows(limit=_FLOW_LIMIT),
    )
