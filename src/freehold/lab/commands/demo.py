"""`freehold demo`: a manager and its workers under load; one worker is killed, no job is lost."""

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
from freehold.http_auth import local_token
from freehold.lab.demo.check import Check
from freehold.lab.demo.flows import define_import
from freehold.lab.demo.kinds import KINDS
from freehold.lab.demo.living import LivingDemo, define_order
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

#: The demo's own schema: other data of a given database is not touched.
SCHEMA = "freehold_demo"
MIN_WORKERS = 2
SCALE_SECONDS = 0.5
COOLDOWN_SECONDS = 2.0
#: Jobs for each slot of a worker. More jobs get more slots, so that the demo stays short.
_JOBS_PER_SLOT = 200


class Serve(Protocol):
    """`serve_http`, an extra that may not be installed."""

    def __call__(
        self,
        app: Freehold,
        settings: Settings,
        *,
        on_ready: Callable[[str], None] | None = None,
        demo_controls: LivingDemo | None = None,
    ) -> Coroutine[Any, Any, None]: ...


@click.command()
@click.option(
    "--jobs",
    "job_count",
    type=click.IntRange(60, 20_000),
    default=400,
    show_default=True,
    help="Number of jobs.",
)
@click.option("--max-workers", type=click.IntRange(3, 16), default=6, show_default=True)
@click.option("--url", help="Use this store instead of a temporary one.")
@click.option("--postgres", is_flag=True, help="Start a temporary PostgreSQL server and use it.")
@click.option(
    "--serve", is_flag=True, help="Serve the dashboard and the HTTP API afterwards, until Ctrl-C."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8787,
    show_default=True,
    help="Port of the HTTP API on 127.0.0.1; 0: any free port.",
)
def demo(
    job_count: int, max_workers: int, url: str | None, postgres: bool, serve: bool, port: int
) -> None:
    """Kill a worker under load and check every job.

    A manager starts workers for a mixed load, and one of them is killed. The demo ends within a
    minute. It fails if a job is lost, has a wrong outcome, or overtakes its lane, according to
    the store or to the handlers' own records.
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
        view = demo_view(console, max_workers)
        run = Demo(console, view, chosen, Path(name), settings, job_count, max_workers, serve)
        found = run.run()
    if found is None:
        raise click.Abort
    if not found.good:
        raise click.exceptions.Exit(REFUSED)


@contextlib.contextmanager
def _store(console: Console, folder: Path, url: str | None, postgres: bool) -> Iterator[str]:
    if not postgres:
        yield url or str(folder / "demo.db")
        return
    console.print("starting a temporary PostgreSQL server …")
    with contextlib.closing(DevPostgres()) as server:
        with progress("initdb"):
            server.start()
        yield server.url


class Demo:
    """One run on one store, from an empty schema to the report."""

    def __init__(
        self,
        console: Console,
        view: DemoView,
        url: str,
        folder: Path,
        settings: Settings,
        job_count: int,
        max_workers: int,
        serve: bool = False,
    ) -> None:
        self._console = console
        self._view = view
        self._folder = folder
        self._settings = settings
        self._job_count = job_count
        self._serve = _server() if serve else None
        self._app = Freehold(url, schema=SCHEMA)
        define(self._app, KINDS.values())
        define_order(self._app)
        define_import(self._app)
        self._rule = ScaleRule(
            default_count=MIN_WORKERS,
            max_count=max_workers,
            concurrency=max(2, job_count // _JOBS_PER_SLOT),
            cooldown_seconds=COOLDOWN_SECONDS,
        )
        self._processes = WorkerProcesses(folder, url, SCHEMA, self._rule.concurrency)

    def run(self) -> Check | None:
        """Returns None if a signal stopped it."""
        try:
            self._app.migrate()
            return run_loop(self._run())
        finally:
            self._app.close()

    async def _run(self) -> Check | None:
        app, rule, slots = self._app, self._rule, self._folder / "slots"
        slots.mkdir()
        manager = Manager(
            app._client.awaited,
            rule,
            self._processes.start,
            slots,
            queues=QUEUES,
            scale_seconds=SCALE_SECONDS,
            grace_seconds=GRACE_SECONDS,
        )
        with contextlib.ExitStack() as stack:
            view = stack.enter_context(self._view)
            scenario = DemoScenario(
                app, manager.name, rule, self._processes, view, KINDS, self._job_count
            )

            async def after(found: Check, stopped: asyncio.Event) -> None:
                stack.close()
                demo_report(self._console, found, scenario.worker_counts, scenario.killed)
                if not found.good:
                    self._console.print(self._processes.log_tail(), markup=False)
                if self._serve is not None:
                    await self._serve_until(stopped, self._serve)

            try:
                return await run_demo(manager, scenario, self._processes, after)
            finally:
                await app._database.aclose()

    async def _serve_until(self, stopped: asyncio.Event, serve: Serve) -> None:
        living = LivingDemo(self._app, self._processes)
        served = serve(
            self._app, self._settings, on_ready=self._print_addresses, demo_controls=living
        )
        stopping = asyncio.create_task(stopped.wait())
        parts = [asyncio.create_task(served), asyncio.create_task(living.run())]
        try:
            done, _ = await asyncio.wait({*parts, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for part in done - {stopping}:
                part.result()  # raises the error that ended it
        finally:
            for task in (*parts, stopping):
                task.cancel()
            await asyncio.gather(*parts, stopping, return_exceptions=True)

    def _print_addresses(self, address: str) -> None:
        from freehold.dashboard.site import dashboard_address  # needs the HTTP extra

        where = f"--url '{self._app._database.shown}' --schema {SCHEMA}"
        self._console.print(
            f"Jobs keep coming, for the manager and its workers; Ctrl-C ends them.\n"
            f"  dashboard    {dashboard_address(address, self._settings)}\n"
            f"  HTTP API     {address}   (described in {address}/api/openapi.json)\n"
            f"  its token    {local_token()}\n"
            f"  watch        freehold top {where}\n"
            f"  add a job    freehold enqueue demo.steady --queue {QUEUES[0]} {where}",
            markup=False,
            soft_wrap=True,
        )


def _server() -> Serve:
    """Imported before anything starts: the HTTP extra may not be installed."""
    from freehold.http.server import serve_http

    return serve_http
