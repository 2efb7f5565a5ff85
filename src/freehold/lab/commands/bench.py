"""`freehold bench`: a quick measurement of a store, on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

import click
from rich.console import Console
from rich.table import Table

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.clock import monotonic
from freehold.errors import FreeholdError
from freehold.store.url import redacted
from freehold.worker.event_loop import run_loop

_BULK_SIZE = 5000
_SPACE_SECONDS = 0.02
_WARM_UP_JOBS = 5
#: After this time, jobs that have not run count as missing.
_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Figures:
    """Jobs a second, and milliseconds from before the enqueue to the handler's start."""

    enqueue_per_second: float
    bulk_enqueue_per_second: float
    drain_per_second: float
    start_p50_ms: float
    start_p99_ms: float
    jobs: int


@click.command(cls=StoreCommand)
@store_options
@click.option(
    "--jobs",
    type=click.IntRange(100, 1_000_000),
    default=10_000,
    show_default=True,
    help="Number of jobs that are enqueued in bulk and drained.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 600),
    default=2.0,
    show_default=True,
    help="Time in which jobs are enqueued one by one.",
)
@as_json
def bench(store: StoreChoice, jobs: int, seconds: float, as_json: bool) -> None:
    """Measure throughput and latency of your store.

    The measurement uses a scratch schema, or a file beside yours, and removes it afterwards. One
    process enqueues and runs trivial jobs: your handlers take longer. The database is busy
    meanwhile.
    """
    with store.open() as app:
        shown = redacted(app.url)
        with app._scratch_app() as own:
            figures = run_loop(_measured(own, jobs, seconds))
    if as_json:
        print_json({"store": shown, **asdict(figures)})
    else:
        _print(Console(highlight=False), shown, figures)


class _Runs:
    """The waiting times of jobs that ran, and an event for when all expected jobs have run."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.expected = 0
        self.all = asyncio.Event()

    def add(self, sent: float) -> None:
        self.waited.append(monotonic() - sent)
        if len(self.waited) == self.expected:
            self.all.set()

    def expect(self, jobs: int) -> None:
        """Starts again from zero."""
        self.waited, self.expected = [], jobs
        self.all.clear()

    def check(self) -> None:
        if len(self.waited) != self.expected:
            raise FreeholdError(
                f"only {len(self.waited)} of {self.expected} jobs ran: nothing was measured"
            )


async def _measured(app: Freehold, jobs: int, seconds: float) -> Figures:
    runs = _Runs()

    @app.task(name="bench.job")
    async def job(sent: float) -> None:
        runs.add(sent)

    try:
        one = await _one_by_one(lambda: job.aenqueue(monotonic()), seconds)
        began = monotonic()
        for start in range(0, jobs, _BULK_SIZE):
            part = [job.prepare(0.0) for _ in range(min(_BULK_SIZE, jobs - start))]
            await app.aenqueue_many(part)
        bulk = jobs / (monotonic() - began)
        runs.expect(jobs + one[0])
        began = monotonic()
        await app.arun_worker(until_idle=True)
        drained, drain = runs.expected, runs.expected / (monotonic() - began)
        runs.check()
        runs.expect(_WARM_UP_JOBS + min(jobs // 10, 250))
        await _spaced(app, lambda: job.aenqueue(monotonic()), runs)
        cuts = statistics.quantiles(runs.waited[_WARM_UP_JOBS:], n=100)
        return Figures(
            enqueue_per_second=round(one[1], 1),
            bulk_enqueue_per_second=round(bulk, 1),
            drain_per_second=round(drain, 1),
            start_p50_ms=round(cuts[49] * 1000, 2),
            start_p99_ms=round(cuts[98] * 1000, 2),
            jobs=drained + runs.expected,
        )
    finally:
        await app._database.aclose()


async def _one_by_one(
    enqueue: Callable[[], Awaitable[object]], seconds: float
) -> tuple[int, float]:
    """Returns the number of jobs, and jobs a second."""
    jobs, began = 0, monotonic()
    while (took := monotonic() - began) < seconds:
        await enqueue()
        jobs += 1
    return jobs, jobs / took


async def _spaced(app: Freehold, enqueue: Callable[[], Awaitable[object]], runs: _Runs) -> None:
    """Enqueues jobs one by one, so that the worker is idle in between."""
    worker = asyncio.create_task(app.arun_worker())
    try:
        for _ in range(runs.expected):
            await enqueue()
            await asyncio.sleep(_SPACE_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(runs.all.wait(), _LIMIT_SECONDS)
        runs.check()
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker


def _print(console: Console, store: str, figures: Figures) -> None:
    console.print(f"{store}: {figures.jobs:,} jobs, all ended", soft_wrap=True)
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in (
        ("enqueue, one by one", f"{figures.enqueue_per_second:,.0f} jobs/s"),
        ("enqueue, in bulk", f"{figures.bulk_enqueue_per_second:,.0f} jobs/s"),
        ("drain, this process", f"{figures.drain_per_second:,.0f} jobs/s"),
        ("from enqueue to start, p50", f"{figures.start_p50_ms:.1f} ms"),
        ("from enqueue to start, p99", f"{figures.start_p99_ms:.1f} ms"),
    ):
        table.add_row(name, value)
    console.print(table)
