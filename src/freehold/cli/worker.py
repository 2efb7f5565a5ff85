"""`freehold worker`: run jobs until told to stop."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from freehold.app import Freehold, TenantSelection
from freehold.cli.common import StoreChoice, store_options, warn_of_unknown_variables
from freehold.cli.logs import log_options, set_up_logs
from freehold.model.tenant import check_tenant
from freehold.telemetry import log
from freehold.worker.event_loop import threads_left


@click.command()
@click.option("--queue", "queues", multiple=True, help="A queue to serve; can be repeated.")
@click.option(
    "--tenants", metavar="all|A,B,C", help="Serve these tenants in one process, by their weights."
)
@click.option("--concurrency", type=int, help="Jobs at a time.")
@click.option("--lease-seconds", type=float, help="A crashed worker's jobs come back after this.")
@click.option("--poll-ms", type=float, help="How often to look, where nothing is heard.")
@click.option("--grace-seconds", type=float, help="How long running jobs may take when draining.")
@click.option(
    "--until-idle", is_flag=True, help="End as soon as nothing is left that could start now."
)
@click.option("--managed-in", type=click.Path(path_type=Path), hidden=True)
@click.option("--seat", type=int, hidden=True)
@click.option(
    "--metrics-port", type=int, help="Serve /metrics and /livez of this process; 0: any free port."
)
@click.option("--metrics-host", help="Where to. Others than 127.0.0.1 need http.tokens.")
@log_options
@store_options
def worker(
    store: StoreChoice,
    queues: tuple[str, ...],
    tenants: str | None,
    concurrency: int | None,
    lease_seconds: float | None,
    poll_ms: float | None,
    grace_seconds: float | None,
    until_idle: bool,
    managed_in: Path | None,
    seat: int | None,
    metrics_port: int | None,
    metrics_host: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Run jobs of --app, and of the simulated kinds in the configuration.

    SIGTERM or Ctrl-C drains: nothing new is claimed, what runs may end within the grace
    period. A second one hurries. SIGUSR1 drains only a worker that has nothing in hand.

    Exit codes: 0 drained, 70 a part crashed, 75 a handler could not be stopped and the process
    should be replaced.
    """
    set_up_logs(log_level, log_format)
    app = app_with_tasks(store)
    if managed_in is None:  # or its manager has said so
        warn_of_unknown_variables(log.warning)
        if store.app is None:
            log.warning("no --app is given: this worker knows the simulated kinds only")
    try:
        code = app.run_worker(
            tenants=_named(tenants),
            queues=queues or None,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            poll_seconds=None if poll_ms is None else poll_ms / 1000.0,
            grace_seconds=grace_seconds,
            until_idle=until_idle,
            managed_in=managed_in,
            seat=seat,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
    finally:
        app.close()
    if left := threads_left():
        log.error("%d threads of handlers (asyncio.to_thread) do not end: they are left", len(left))
        logging.shutdown()
        os._exit(code)
    raise click.exceptions.Exit(code)


def _named(tenants: str | None) -> TenantSelection:
    if tenants is None or tenants == "all":
        return tenants
    return [check_tenant(name.strip()) for name in tenants.split(",")]


def app_with_tasks(store: StoreChoice) -> Freehold:
    """The app with its tasks, on the store that was asked for."""
    app = store.app or Freehold(store.url, schema=store.schema)
    if store.url is not None:
        app.url = store.url
    if store.schema is not None:
        app.schema = store.schema
    return app if store.tenant is None else app.tenant(store.tenant)
