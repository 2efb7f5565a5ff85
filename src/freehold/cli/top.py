"""`freehold top`: what happens right now, on one screen."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, store_options
from freehold.cli.render import show
from freehold.cli.text import one_line
from freehold.cli.top_view import Frame, JobRate, top_view
from freehold.errors import StoreUnavailable
from freehold.model.state import LEASED
from freehold.store.types import JobFilter

#: Leased jobs that one picture reads, to show the longest-running of them.
_LEASED_LIMIT = 200


@click.command()
@click.option("--once", is_flag=True, help="Print one picture and end; so does a pipe.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600.0),
    default=1.0,
    show_default=True,
    help="Seconds between two pictures.",
)
@store_options
def top(store: StoreChoice, once: bool, interval: float) -> None:
    """Watch queues, workers, throughput and running jobs. Ctrl-C ends it."""
    with store.open() as app:
        if once or not sys.stdout.isatty():
            show(top_view(_look(app), JobRate()))
            return
        try:
            _watch(app, interval)
        except KeyboardInterrupt:
            return


def _watch(app: Freehold, interval: float) -> None:
    console, pace = Console(highlight=False), JobRate()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                live.update(top_view(_look(app), pace, console.size), refresh=True)
            except StoreUnavailable as error:
                text = f"the store does not answer, looking again: {one_line(str(error))}"
                live.update(Text(text, style="red"), refresh=True)
            # A person watches: this is the pace of the picture, nothing waits for it.
            time.sleep(interval)


def _look(app: Freehold) -> Frame:
    operate = app.operate
    leased = operate.jobs(JobFilter(states=LEASED, limit=_LEASED_LIMIT))
    return Frame(
        store=app.database.shown,
        queues=operate.queues(),
        counts=operate.counts(),
        workers=operate.workers(),
        leased=leased.jobs,
        now=operate.now(),
    )
