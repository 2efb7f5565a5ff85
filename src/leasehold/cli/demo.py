"""`leasehold demo`: see it work, see it lose a worker, see that nothing is lost."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from leasehold.app import Leasehold
from leasehold.cli.failing import REFUSED
from leasehold.demo.fleet import Fleet
from leasehold.demo.load import Check, check, prepare
from leasehold.devpostgres import DevPostgres
from leasehold.errors import BadInput
from leasehold.kinds import register
from leasehold.model.history import EventKind
from leasehold.model.state import FINAL, State
from leasehold.settings import load
from leasehold.store.contract import Filter

LEASE_SECONDS = 3.0
DEADLINE_SECONDS = 120.0
_LOOK_SECONDS = 0.2


@click.command()
@click.option("--jobs", "count", type=click.IntRange(20, 20_000), default=500, show_default=True)
@click.option("--workers", type=click.IntRange(2, 16), default=3, show_default=True)
@click.option("--url", help="Run it on this store instead of a temporary one.")
@click.option("--postgres", is_flag=True, help="Run it on a PostgreSQL that it starts itself.")
def demo(count: int, workers: int, url: str | None, postgres: bool) -> None:
    """Real workers, a mixed load, one of them killed in the middle; then it counts.

    Fails if a single job is lost, ends otherwise than it should, or overtakes its lane.
    """
    if url and postgres:
        raise BadInput("--url and --postgres exclude each other: give one of them")
    with (
        tempfile.TemporaryDirectory(prefix="leasehold-demo-") as name,
        _store(Path(name), url, postgres) as chosen,
    ):
        found = Demo(Console(), chosen, Path(name), workers, count).run()
    if not found.good:
        raise click.exceptions.Exit(REFUSED)


@contextlib.contextmanager
def _store(folder: Path, url: str | None, postgres: bool) -> Iterator[str]:
    if not postgres:
        yield url or str(folder / "demo.db")
        return
    with DevPostgres() as server:
        yield server.url


class Demo:
    """One run: enqueue, watch, kill, watch on, count."""

    def __init__(self, console: Console, url: str, folder: Path, workers: int, jobs: int) -> None:
        self._console = console
        self._workers = workers
        self._count = jobs
        self._app = Leasehold(url)
        self._fleet = Fleet(url, folder, LEASE_SECONDS)
        self._story: list[Text] = []
        #: Jobs of the killed worker that have not come back yet.
        self._missing: list[int] = []
        self._bar = Progress(
            TextColumn("[bold]finished"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn()
        )

    def run(self) -> Check:
        app = self._app
        app.migrate()
        register(app, load().kinds.values())
        ids = [handle.id for handle in app.enqueue_many(prepare(app, self._count))]
        self._say(f"{len(ids)} jobs enqueued on {app.database.shown}")
        self._task = self._bar.add_task("jobs", total=len(ids))
        try:
            for _ in range(self._workers):
                self._say(f"worker process {self._fleet.start().pid} started")
            with Live(self._view(), console=self._console, refresh_per_second=8) as live:
                self._watch(live, ids)
            if not self._console.is_terminal:  # there, Live ends its last picture itself
                self._console.line()
            found = check(app, ids)
            self._report(found)
            return found
        finally:
            self._fleet.stop()
            app.close()

    def _watch(self, live: Live, ids: list[int]) -> None:
        """Until everything has ended. In the middle, the worker with most in hand is killed."""
        began = time.monotonic()
        killed = False
        while time.monotonic() - began < DEADLINE_SECONDS:
            jobs = self._app.client.store.read(ids)
            done = sum(job.state in FINAL for job in jobs.values())
            self._bar.update(self._task, completed=done)
            self._tell_recoveries()
            live.update(self._view())
            if done == len(ids):
                return
            if not killed and done >= len(ids) // 4:
                killed = self._kill_one()
            # A person watches: this is the pace of the picture, nothing waits for it.
            time.sleep(_LOOK_SECONDS)
        self._say("the deadline passed before everything had ended", "red")

    def _kill_one(self) -> bool:
        """Kill whoever holds the most leases, and start another in its place."""
        leased = self._app.operate.jobs(
            Filter(states=frozenset({State.ASSIGNED, State.RUNNING}), limit=1000)
        )
        held: dict[int, list[int]] = {}
        for job in leased.jobs:
            if job.lease is not None:
                held.setdefault(_pid_of(job.lease.owner), []).append(job.id)
        victims = [
            pid for pid in sorted(held, key=lambda p: -len(held[p])) if pid in self._fleet.alive
        ]
        if not victims:
            return False
        self._fleet.kill(victims[0])
        self._missing = held[victims[0]]
        self._say(
            f"worker {victims[0]} killed with -9, holding {len(self._missing)} jobs; "
            f"their leases run out within {LEASE_SECONDS:g} s", "red",
        )  # fmt: skip
        self._say(f"worker process {self._fleet.start().pid} started in its place")
        return True

    def _tell_recoveries(self) -> None:
        """Once for each look: which of the killed worker's jobs have come back."""
        back = [job_id for job_id in self._missing if self._was_recovered(job_id)]
        if back:
            self._missing = [job_id for job_id in self._missing if job_id not in back]
            named = ", ".join(str(job_id) for job_id in back[:6]) + (", …" if back[6:] else "")
            self._say(f"recovered, and running again ({len(back)}): {named}", "green")

    def _was_recovered(self, job_id: int) -> bool:
        events = self._app.client.store.events(job_id)
        return any(event.kind is EventKind.LEASE_LOST for event in events)

    # -- what a person sees ------------------------------------------------------------------

    def _say(self, text: str, style: str = "") -> None:
        self._story.append(Text(f"  {time.strftime('%H:%M:%S')}  {text}", style=style))

    def _view(self) -> Group:
        counts = self._app.operate.counts()
        now = Table.grid(padding=(0, 2))
        now.add_row(
            f"[bold]{len(self._fleet.alive)}[/] workers", f"[bold]{counts.ready}[/] ready",
            f"[bold]{counts.leased}[/] leased", f"[bold]{counts.waiting}[/] waiting",
            f"[bold]{counts.following}[/] behind in a lane",
        )  # fmt: skip
        return Group(self._bar, now, *self._story[-14:])

    def _report(self, found: Check) -> None:
        table = Table(title="What became of it", title_justify="left", show_header=False)
        table.add_row("jobs", str(found.jobs))
        for state, number in sorted(found.states.items()):
            table.add_row(f"  {state}", str(number))
        table.add_row("retries after an error", str(found.retried))
        table.add_row("recovered from the killed worker", str(found.recovered))
        table.add_row("lanes, with jobs out of order", f"{found.lanes}, {found.lane_overlaps}")
        table.add_row("lost", str(len(found.unfinished)))
        table.add_row("ended otherwise than they should", str(len(found.wrong)))
        self._console.print()
        self._console.print(table)
        word = (
            "[bold green]Nothing was lost.[/]"
            if found.good
            else "[bold red]NOT as it should be.[/]"
        )
        self._console.print(word)


def _pid_of(owner: str) -> int:
    """Owners are called w<pid in hex>-<random>."""
    return int(owner[1:].partition("-")[0], 16)
