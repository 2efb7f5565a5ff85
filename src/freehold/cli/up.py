"""`freehold up`: the whole service in one command."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import click

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, store_options, warn_of_unknown_variables
from freehold.cli.logs import log_options, set_up_logs
from freehold.cli.worker import app_with_tasks
from freehold.errors import StoreUnavailable
from freehold.manager.manager import Manager
from freehold.manager.process_slots import folder_of
from freehold.manager.reload import follow as watch_sources
from freehold.manager.service import serve
from freehold.manager.spawn import Start, starter
from freehold.model.names import check_name
from freehold.model.scaling import ScaleRule
from freehold.settings import Settings, load
from freehold.telemetry import Telemetry, log
from freehold.worker.config import WorkerSettings, worker_settings
from freehold.worker.event_loop import run_loop
from freehold.worker.sweeper import Sweeper

Part: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


@click.command()
@click.option("--workers", type=int, help="Worker processes at start, and never fewer.")
@click.option("--max-workers", type=int, help="Never more than this many, draining ones included.")
@click.option("--queue", "queues", multiple=True, help="A queue to serve; can be repeated.")
@click.option("--concurrency", type=int, help="Jobs at a time in each worker.")
@click.option("--host", help="The API's address. Another than 127.0.0.1 needs tokens.")
@click.option("--port", type=int, help="The API's port; 0 is any free one.")
@click.option("--no-http", is_flag=True, help="Serve no API.")
@click.option("--reload", is_flag=True, help="Replace the workers when source files here change.")
@click.option(
    "--name",
    default="default",
    show_default=True,
    help="Managers of one store on one machine need different names.",
)
@log_options
@store_options
def up(
    store: StoreChoice,
    workers: int | None,
    max_workers: int | None,
    queues: tuple[str, ...],
    concurrency: int | None,
    host: str | None,
    port: int | None,
    no_http: bool,
    reload: bool,
    name: str,
    log_level: str,
    log_format: str,
) -> None:
    """Run everything: a manager that keeps the right number of workers alive, a sweeper, the API.

    Workers come as soon as there is work for them, and go once they were idle for a while. Dead
    ones are replaced. SIGTERM or Ctrl-C drains: all workers end what they run, within the grace
    period. A second one hurries them. If this process is killed, its workers go on, and the next
    `freehold up` takes them over; where none comes within seconds, they drain.

    Exit codes: 0 drained, 1 another manager of this name runs here, 70 a part crashed, 75 a
    worker did not end in time and was killed.
    """
    set_up_logs(log_level, log_format)
    warn_of_unknown_variables(log.warning)
    settings = load(
        {
            "workers.default_count": workers,
            "workers.max_count": max_workers,
            "workers.concurrency": concurrency,
            "http.host": host,
            "http.port": port,
        }
    )
    chosen = worker_settings(settings, queues=queues or None)
    app = app_with_tasks(store)
    if store.app is None:
        log.warning("no --app is given: the workers know the simulated kinds only")
    _look_at(app)
    folder = folder_of(_where(app), check_name("name", name))
    start = starter(*_worker_command(app, store.app_name, chosen, log_level, log_format))
    try:
        with contextlib.nullcontext() if no_http else _api(app, settings) as api:
            code = run_loop(_run(app, settings, chosen, folder, start, api, reload))
    finally:
        app.close()
    raise click.exceptions.Exit(code)


@contextlib.contextmanager
def _api(app: Freehold, settings: Settings) -> Iterator[Part | None]:
    """The API on its address, which is taken before anything begins."""
    try:
        from freehold.http.server import listening, serve_on
    except ImportError as error:
        log.warning("no API is served (%s): install `freehold[http]`, or say --no-http", error)
        yield None
        return
    with listening(settings) as listener:
        yield lambda: serve_on(listener, app, settings)


async def _run(
    app: Freehold,
    settings: Settings,
    chosen: WorkerSettings,
    folder: Path,
    start: Start,
    api: Part | None,
    reload: bool,
) -> int:
    manager = Manager(
        app.client.awaited,
        _rule(settings),
        start,
        folder,
        queues=chosen.queues,
        scale_seconds=settings["workers.scale_interval_ms"] / 1000.0,
        grace_seconds=chosen.grace_seconds,
    )
    # What runs beside the manager: coroutines that end when they are cancelled, which happens
    # after the last worker has drained. Signals are the manager's.
    beside: dict[str, Coroutine[Any, Any, None]] = {"sweeper": _sweep(app, chosen)}
    if api is not None:
        beside["API"] = api()
    if reload:
        beside["reloader"] = watch_sources(Path.cwd(), manager.renew)
    try:
        return await serve(manager, beside)
    finally:
        await app.aclose()  # with the tenants that callers of the API asked for


def _rule(settings: Settings) -> ScaleRule:
    return ScaleRule(
        default_count=int(settings["workers.default_count"]),
        max_count=int(settings["workers.max_count"]),
        concurrency=int(settings["workers.concurrency"]),
        cooldown_seconds=settings["workers.scale_cooldown_seconds"],
        late_seconds=settings["workers.scale_late_seconds"],
    )


async def _sweep(app: Freehold, chosen: WorkerSettings) -> None:
    """Jobs come back and fall due also while no worker lives."""
    sweeper = Sweeper(
        app.client.awaited,
        Telemetry(),
        tasks=frozenset(),
        history_days=chosen.history_days,
        chance=random.random,
        room=lambda: 0,
        on_ready=lambda: None,
    )
    await sweeper.run()


def _look_at(app: Freehold) -> None:
    """A store that needs a hand is told of at once; one that is not up yet may come."""
    try:
        app.operate.now()
        app.operate.workers()
    except StoreUnavailable as error:
        log.warning("the store is not there yet: %s", error)


def _where(app: Freehold) -> str:
    """What is the same for all who mean this store."""
    shown, prefix = app.database.shown, "sqlite:///"
    if shown.startswith(prefix):
        return str(Path(shown.removeprefix(prefix)).resolve())
    return f"{shown} {app.schema}"


def _worker_command(
    app: Freehold, app_name: str | None, chosen: WorkerSettings, log_level: str, log_format: str
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment: what was decided here holds there."""
    arguments = [
        "--concurrency",
        str(chosen.concurrency),
        "--log-level",
        log_level,
        "--log-format",
        log_format,
    ]
    for queue in chosen.queues:
        arguments += ["--queue", queue]
    environment = {"FREEHOLD_URL": app.url, "FREEHOLD_SCHEMA": app.schema}
    if app_name:
        environment["FREEHOLD_APP"] = app_name
    if app.of_tenant:
        environment["FREEHOLD_TENANT"] = app.of_tenant
    return arguments, environment
