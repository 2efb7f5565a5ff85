"""`freehold up`: the whole service in one command."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click

from freehold.app import Freehold, TenantSelection
from freehold.cli.common import (
    StoreChoice,
    StoreCommand,
    store_options,
    warn_of_unknown_variables,
)
from freehold.cli.fleets import FleetPlan, parse_tenant_counts, plan_fleets
from freehold.cli.logs import log_options, set_up_logs
from freehold.cli.worker import app_with_tasks, tenant_selection
from freehold.errors import BadSettings, StoreDenied, StoreUnavailable
from freehold.http_auth import token_variables
from freehold.manager.manager import Manager, already_runs
from freehold.manager.manager_group import ManagerGroup
from freehold.manager.process_slots import folder_of, manager_in
from freehold.manager.reload import watch_sources
from freehold.manager.service import serve
from freehold.manager.spawn import Start, starter
from freehold.model.names import check_name
from freehold.model.scaling import ScaleRule
from freehold.open_files import raise_limit
from freehold.settings import Settings, load
from freehold.tasks import Registry
from freehold.telemetry import Telemetry, log
from freehold.worker.config import WorkerSettings, worker_settings
from freehold.worker.ended_calls import EndedCalls
from freehold.worker.event_loop import run_loop
from freehold.worker.sweeper import Sweeper
from freehold.worker.wakeups import Wakeups

Part: TypeAlias = Callable[[Telemetry], Coroutine[Any, Any, None]]


@click.command(cls=StoreCommand)
@click.option("--default-count", type=int, help="Minimum number of worker processes.")
@click.option("--max-count", type=int, help="Maximum number of worker processes.")
@click.option("--scale-interval-ms", type=int, help="How often the number of workers is adjusted.")
@click.option(
    "--queue", "queues", multiple=True, help="A queue to serve; repeatable. [default: all]"
)
@click.option(
    "--tenants", metavar="all|A,B,C", help="Serve these tenants; each worker serves all of them."
)
@click.option(
    "--tenant-count",
    "tenant_counts",
    multiple=True,
    metavar="NAME=N|NAME=N-M",
    help="A tenant with so many workers of its own, which serve no other; repeatable.",
)
@click.option("--concurrency", type=int, help="Maximum number of running jobs in each worker.")
@click.option("--host", help="Address of the API; other than 127.0.0.1 it needs http.tokens.")
@click.option("--port", type=int, help="Port of the API; 0: any free port.")
@click.option("--no-http", is_flag=True, help="Do not serve the API.")
@click.option("--reload", is_flag=True, help="Replace the workers when source files here change.")
@click.option(
    "--name",
    default="default",
    show_default=True,
    help="Name of the manager, unique for this store and machine.",
)
@log_options
@store_options
def up(
    store: StoreChoice,
    default_count: int | None,
    max_count: int | None,
    scale_interval_ms: int | None,
    queues: tuple[str, ...],
    tenants: str | None,
    tenant_counts: tuple[str, ...],
    concurrency: int | None,
    host: str | None,
    port: int | None,
    no_http: bool,
    reload: bool,
    name: str,
    log_level: str,
    log_format: str,
) -> None:
    """Run a manager, its workers and the HTTP API.

    The manager starts workers while jobs are waiting, drains them when they are idle, and
    replaces those that die. SIGTERM or Ctrl-C drains all workers: running jobs may end within
    the grace period. A second SIGTERM stops running jobs at once: by on_drain they return to
    the queue or, as lane jobs do by default, are paused. If this process is killed, its workers
    continue and the next `freehold up` takes them over; if none is started within seconds, they
    drain.

    Exit codes: 0 drained, 1 another manager of this name runs here, 3 the store refused the login
    or the rights at the start, 70 a part crashed, 75 a worker did not end in time and was killed.
    """
    set_up_logs(log_level, log_format)
    raise_limit()
    warn_of_unknown_variables(log.warning)
    settings = load(
        {
            "workers.default_count": default_count,
            "workers.max_count": max_count,
            "workers.scale_interval_ms": scale_interval_ms,
            "workers.concurrency": concurrency,
            "http.host": host,
            "http.port": port,
        }
    )
    chosen, app = worker_settings(settings, queues=queues or None), app_with_tasks(store)
    if store.app is None:
        log.warning("no --app is given: the workers know no tasks of yours")
    served, counts = tenant_selection(tenants), parse_tenant_counts(tenant_counts)
    plans = plan_fleets(app, _rule(settings), served, settings.tenants, counts)
    _check_store(app, served, plans)
    check_name("name", name)
    hidden = token_variables(settings.http.tokens)
    fleets = []
    for plan in plans:
        command = _worker_command(plan.app, store.app_name, chosen, log_level, log_format)
        fleets.append(_fleet(plan, name, command, hidden))
    try:
        with contextlib.nullcontext() if no_http else _api(app, settings, fleets[0][2]) as api:
            code = run_loop(_run(app, settings, chosen, fleets, api, reload))
    finally:
        app.close()
    raise click.exceptions.Exit(code)


@contextlib.contextmanager
def _api(app: Freehold, settings: Settings, folder: Path) -> Iterator[Part | None]:
    """The API, whose address is bound before anything else starts. A manager that already runs
    usually serves there, and is then the reason why the address is taken."""
    try:
        from freehold.http.server import listening, serve_on
    except (ImportError, BadSettings) as error:  # at the import: a package is missing
        log.warning("no API is served (%s): install `freehold[http]`, or use --no-http", error)
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(listening(settings))
        except BadSettings:
            if manager_in(folder) is not None:
                raise already_runs(folder) from None
            raise
        yield lambda telemetry: serve_on(listener, app, settings, telemetry=telemetry)


async def _run(
    app: Freehold,
    settings: Settings,
    chosen: WorkerSettings,
    fleets: Sequence[tuple[FleetPlan, Start, Path]],
    api: Part | None,
    reload: bool,
) -> int:
    telemetry = Telemetry()
    managers = [
        Manager(
            plan.store(),
            plan.rule,
            start,
            folder,
            queues=chosen.queues,
            scale_seconds=settings.workers.scale_interval_ms / 1000.0,
            grace_seconds=chosen.shutdown_grace_seconds,
            telemetry=telemetry,
        )
        for plan, start, folder in fleets
    ]
    manager = ManagerGroup(managers)
    # Only the manager handles signals. The other parts are canceled after the last worker has
    # drained.
    parts: dict[str, Coroutine[Any, Any, None]] = {"sweeper": _sweep(app, chosen, telemetry)}
    if api is not None:
        parts["API"] = api(telemetry)
    if reload:
        parts["reloader"] = watch_sources(Path.cwd(), manager.replace_workers)
    try:
        return await serve(manager, parts)
    finally:
        await app.aclose()  # includes the tenants' stores that API requests have opened


def _rule(settings: Settings) -> ScaleRule:
    return ScaleRule(
        default_count=settings.workers.default_count,
        max_count=settings.workers.max_count,
        concurrency=settings.workers.concurrency,
        cooldown_seconds=settings.workers.scale_cooldown_seconds,
        late_seconds=settings.workers.scale_late_seconds,
    )


async def _sweep(app: Freehold, chosen: WorkerSettings, telemetry: Telemetry) -> None:
    """Recovers expired leases and makes due jobs ready also while no worker runs."""
    sweeper = Sweeper(
        app._client.awaited,
        telemetry,
        chosen,
        Registry(),
        None,
        Wakeups(),
        random.random,
        EndedCalls(app.tasks.extensions),
    )
    await sweeper.run()


def _check_store(app: Freehold, tenants: TenantSelection, plans: Sequence[FleetPlan]) -> None:
    """Raises at once for a store that needs an action, and for an unknown tenant. A store that is
    not up yet may still come."""
    named = () if tenants is None or tenants == "all" else tenants
    own = [plan.app._tenant_name for plan in plans if plan.app._tenant_name is not None]
    try:
        for name in sorted({*named, *own}):
            app.tenants.get(name)
        app.operator.now()
        app.operator.workers()
        app._client.store.make_ready(0)  # needs the rights of a worker
    except StoreDenied:
        raise
    except StoreUnavailable as error:
        log.warning("the store is not available yet: %s", error)


def _fleet(
    plan: FleetPlan,
    name: str,
    command: tuple[list[str], dict[str, str]],
    hidden: Collection[str],
) -> tuple[FleetPlan, Start, Path]:
    arguments, environment = command
    folder = folder_of(plan.app._store_identity + plan.mark, name)
    return plan, starter([*arguments, *plan.arguments], environment, hidden), folder


def _worker_command(
    app: Freehold, app_name: str | None, chosen: WorkerSettings, log_level: str, log_format: str
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that pass this process's settings on to its workers."""
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
    if app._tenant_name:
        environment["FREEHOLD_TENANT"] = app._tenant_name
    return arguments, environment
