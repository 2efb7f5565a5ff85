"""`freehold demo`: see it work, see it lose a worker, see that nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Protocol

import click
from rich.console import Console

from freehold.app import Freehold
from freehold.cli.errors import REFUSED
from freehold.cli.progress import progress
from freehold.errors import BadInput
from freehold.lab.demo.check import Check
from freehold.lab.demo.load import QUEUES
from freehold.lab.demo.report import demo_report
from freehold.lab.demo.run import run_demo
from freehold.lab.demo.scenario import DemoScenario
from freehold.lab.demo.tasks import define
from freehold.lab.demo.view import DemoView, demo_view
from freehold.lab.demo.worker_processes import GRACE_SECONDS, WorkerProcesses
from freehold.lab.devpostgres import DevPostgres
from freehold.manager.manager import Manager
from freehold.model.scaling import ScaleRule
from freehold.settings import Settings, load
from freehold.worker.event_loop import run_loop

#: A schema of its own: what is in a given database already stays as it is.
SCHEMA = "freehold_demo"
LEAST_WORKERS = 2
SCALE_SECONDS = 0.5
COOLDOWN_SECONDS = 2.0
#: Jobs to a slot of a worker: with more jobs there are more slots, so that it never takes long.
_JOBS_PER_SLOT = 200


class Serve(Protocol):
    """`serve_http`, whose module may not be there."""

    def __call__(
        self, app: Freehold, settings: Settings, *, on_ready: Callable[[str], None] | None = None
    ) -> Coroutine[Any, Any, None]: ...


@click.command()
@click.option(
    "--jobs",
    "count",
    type=click.IntRange(60, 20_000),
    default=400,
    show_default=True,
    help="How many, in all.",
)
@click.option("--max-workers", type=click.IntRange(3, 16), default=6, show_default=True)
@click.option("--url", help="Run it on this store instead of a temporary one.")
@click.option("--postgres", is_flag=True, help="Run it on a PostgreSQL that it starts itself.")
@click.option("--serve", is_flag=True, help="Stay up afterwards, with the HTTP API, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8787,
    show_default=True,
    help="Of the HTTP API on 127.0.0.1; 0: any free one.",
)
def demo(
    count: int, max_workers: int, url: str | None, postgres: bool, serve: bool, port: int
) -> None:
    """A manager, its workers and a mixed load; one worker is killed in the middle; then it counts.

    Ends by itself within a minute. Fails if a single job is lost, ends otherwise than it should,
    or overtakes its lane: by what the store says, and by what the handlers themselves said.
    """
    if url and postgres:
        raise BadInput("--url and --postgres exclude each other: give one of them")
    console = Console(highlight=False)
    with (
        tempfile.TemporaryDirectory(prefix="freehold-demo-") as name,
        _store(console, Path(name), url, postgres) as chosen,
    ):
        flags = {"http.host": "127.0.0.1", "http.port": port}
        settings = load(flags, environment={}, folder=Path(name))
        stage = demo_view(console, max_workers)
        found = Demo(console, stage, chosen, Path(name), settings, count, max_workers, serve).run()
    if found is None:
        raise click.Abort
    if not found.good:
        raise click.exceptions.Exit(REFUSED)


@contextlib.contextmanager
def _store(console: Console, folder: Path, url: str | None, postgres: bool) -> Iterator[str]:
    if not postgres:
        yield url or str(folder / "demo.db")
        return
    console.print("a PostgreSQL of its own is set up …")
    with contextlib.closing(DevPostgres()) as server:
        with progress("initdb"):
            server.start()
        yield server.url


class Demo:
    """One run on one store, from an empty schema to the report."""

    def __init__(
        self,
        console: Console,
        stage: DemoView,
        url: str,
        folder: Path,
        settings: Settings,
        count: int,
        max_workers: int,
        serve: bool = False,
    ) -> None:
        self._console = console
        self._stage = stage
        self._folder = folder
        self._settings = settings
        self._count = count
        self._serve = _server() if serve else None
        self._app = Freehold(url, schema=SCHEMA)
        define(self._app, settings.kinds.values())
        self._rule = ScaleRule(
            default_count=LEAST_WORKERS,
            max_count=max_workers,
            concurrency=max(2, count // _JOBS_PER_SLOT),
            cooldown_seconds=COOLDOWN_SECONDS,
        )
        self._staff = WorkerProcesses(folder, url, SCHEMA, self._rule.concurrency)

    def run(self) -> Check | None:
        """None if it was interrupted."""
        try:
            self._app.migrate()
            return run_loop(self._run())
        finally:
            self._app.close()

    async def _run(self) -> Check | None:
        app, rule, seats = self._app, self._rule, self._folder / "seats"
        seats.mkdir()
        manager = Manager(
            app.client.awaited,
            rule,
            self._staff.start,
            seats,
            queues=QUEUES,
            scale_seconds=SCALE_SECONDS,
            grace_seconds=GRACE_SECONDS,
        )
        with contextlib.ExitStack() as until_the_end:
            stage = until_the_end.enter_context(self._stage)
            director = DemoScenario(
                app, manager.name, rule, self._staff, stage, self._settings.kinds, self._count
            )

            async def after(found: Check, stopped: asyncio.Event) -> None:
                until_the_end.close()
                demo_report(self._console, found, director.course, director.killed)
                if not found.good:
                    self._console.print(self._staff.log_tail(), markup=False)
                if self._serve is not None:
                    await self._stay_up(self._serve, stopped)

            try:
                return await run_demo(manager, director, self._staff, after)
            finally:
                await app.database.aclose()

    async def _stay_up(self, serve: Serve, stopped: asyncio.Event) -> None:
        """Until a signal."""
        serving = asyncio.create_task(serve(self._app, self._settings, on_ready=self._tell))
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()  # it could not go on, and says why
        finally:
            serving.cancel()
            stopping.cancel()
            await asyncio.gather(serving, stopping, return_exceptions=True)

    def _tell(self, address: str) -> None:
        where = f"--url '{self._app.database.shown}' --schema {SCHEMA}"
        self._console.print(
            f"The manager and its workers stay up; Ctrl-C ends it.\n"
            f"  the HTTP API   {address}   (described in {address}/api/openapi.json)\n"
            f"  to watch       freehold top {where}\n"
            f"  one more job   freehold enqueue demo.steady --queue {QUEUES[0]} {where}",
            markup=False,
            soft_wrap=True,
        )


def _server() -> Serve:
    """Looked for before anything is done: it is an extra that may not be installed."""
    from freehold.http.server import serve_http

    return serve_http
