"""`leasehold up`: the whole service in one command."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click

from leasehold.app import Leasehold
from leasehold.cli.common import StoreChoice, store_options
from leasehold.cli.logs import log_options, set_up_logs
from leasehold.cli.worker import app_with_tasks
from leasehold.errors import StoreUnavailable
from leasehold.manager import sources
from leasehold.manager.manager import Manager
from leasehold.manager.service import serve
from leasehold.manager.starting import Start, starter
from leasehold.model.names import check_name
from leasehold.model.scaling import ScaleRule
from leasehold.seats import folder_of
from leasehold.settings import Settings, load
from leasehold.telemetry import Telemetry, log
from leasehold.worker.config import WorkerSettings, worker_settings
from leasehold.worker.looping import run_loop
from leasehold.worker.sweeper import Sweeper


@click.command()
@click.option("--workers", type=int, help="Worker processes at start, and never fewer.")
@click.option("--max-workers", type=int, help="Never more than this many, draining ones included.")
@click.option("--queue", "queues", multiple=True, help="A queue to serve; can be repeated.")
@click.option("--concurrency", type=int, help="Jobs at a time in each worker.")
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
    reload: bool,
    name: str,
    log_level: str,
    log_format: str,
) -> None:
    """Run everything: a manager that keeps the right number of workers alive, and a sweeper.

    Workers come as soon as there is work for them, and go once they were idle for a while. Dead
    ones are replaced. SIGTERM or Ctrl-C drains: all workers end what they run, within the grace
    period. A second one hurries them. If this process is killed, its workers go on, and the next
    `leasehold up` takes them over; where none comes within seconds, they drain.

    Exit codes: 0 drained, 1 another manager of this name runs here, 70 a part crashed, 75 a
    worker did not end in time and was killed.
    """
    set_up_logs(log_level, log_format)
    flags = {"workers.default_count": workers, "workers.max_count": max_workers}
    settings = load(flags | {"workers.concurrency": concurrency})
    chosen = worker_settings(settings, queues=queues or None)
    app = app_with_tasks(store)
    if store.app is None:
        log.warning("no --app is given: the workers know the simulated kinds only")
    _look_at(app)
    folder = folder_of(_where(app), check_name("name", name))
    start = starter(*_worker_command(app, store.app_name, chosen, log_level, log_format))
    try:
        code = run_loop(_run(app, settings, chosen, folder, start, reload))
    finally:
        app.close()
    raise click.exceptions.Exit(code)


async def _run(
    app: Leasehold, settings: Settings, chosen: WorkerSettings, folder: Path, start: Start,
    reload: bool,
) -> int:  # fmt: skip
    manager = Manager(
        app.client.awaited, _rule(settings), start, folder,
        queues=chosen.queues,
        scale_seconds=settings["workers.scale_interval_ms"] / 1000.0,
        grace_seconds=chosen.grace_seconds,
    )  # fmt: skip
    # What runs beside the manager: coroutines that end when they are cancelled, which happens
    # after the last worker has drained. Signals are the manager's. An HTTP server joins here.
    beside: dict[str, Coroutine[Any, Any, None]] = {"sweeper": _sweep(app, chosen)}
    if reload:
        beside["reloader"] = sources.follow(Path.cwd(), manager.renew)
    try:
        return await serve(manager, beside)
    finally:
        await app.database.aclose()


def _rule(settings: Settings) -> ScaleRule:
    return ScaleRule(
        default_count=int(settings["workers.default_count"]),
        max_count=int(settings["workers.max_count"]),
        concurrency=int(settings["workers.concurrency"]),
        cooldown_seconds=settings["workers.scale_cooldown_seconds"],
        late_seconds=settings["workers.scale_late_seconds"],
    )


async def _sweep(app: Leasehold, chosen: WorkerSettings) -> None:
    """Jobs come back and fall due also while no worker lives."""
    sweeper = Sweeper(
        app.client.awaited, Telemetry(), tasks=frozenset(), history_days=chosen.history_days,
        chance=random.random, room=lambda: 0, on_ready=lambda: None,
    )  # fmt: skip
    await sweeper.run()


def _look_at(app: Leasehold) -> None:
    """A store that needs a hand is told of at once; one that is not up yet may come."""
    try:
        app.operate.now()
        app.operate.workers()
    except StoreUnavailable as error:
        log.warning("the store is not there yet: %s", error)


def _where(app: Leasehold) -> str:
    """What is the same for all who mean this store."""
    shown, prefix = app.database.shown, "sqlite:///"
    if shown.startswith(prefix):
        return str(Path(shown.removeprefix(prefix)).resolve())
    return f"{shown} {app.schema}"


def _worker_command(
    app: Leasehold, app_name: str | None, chosen: WorkerSettings, log_level: str, log_format: str
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment: what was decided here holds there."""
    arguments = ["--concurrency", str(chosen.concurrency), "--log-level", log_level,
                 "--log-format", log_format]  # fmt: skip
    for queue in chosen.queues:
        arguments += ["--queue", queue]
    environment = {"LEASEHOLD_URL": app.url, "LEASEHOLD_SCHEMA": app.schema}
    if app_name:
        environment["LEASEHOLD_APP"] = app_name
    return arguments, environment
