"""`freehold worker`: run jobs until a signal."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path

import click

from freehold.app import Freehold, TenantSelection
from freehold.cli.common import (
    StoreChoice,
    StoreCommand,
    store_options,
    warn_of_unknown_variables,
)
from freehold.cli.logs import log_options, set_up_logs
from freehold.http_auth import Token, token_variables, tokens_of
from freehold.model.plural import count
from freehold.model.tenant import check_tenant
from freehold.open_files import raise_limit
from freehold.settings import load
from freehold.telemetry import log
from freehold.worker.event_loop import threads_left
from freehold.worker.execution.process_child import ChildSetup


@click.command(cls=StoreCommand)
@click.option(
    "--queue", "queues", multiple=True, help="A queue to serve; repeatable. [default: all]"
)
@click.option(
    "--tenants", metavar="all|A,B,C", help="Serve these tenants in one process, by their weights."
)
@click.option(
    "--without-tenant", multiple=True, help="A tenant to leave out of --tenants all; repeatable."
)
@click.option("--concurrency", type=int, help="Maximum number of jobs running at once.")
@click.option(
    "--lease-timeout-seconds",
    type=float,
    help="Time after which a crashed worker's jobs are recovered.",
)
@click.option(
    "--poll-interval-ms",
    type=float,
    help="Polling interval when notifications are not available.",
)
@click.option(
    "--shutdown-grace-seconds",
    type=float,
    help="Time that running jobs get to end when the worker drains.",
)
@click.option("--until-idle", is_flag=True, help="Exit as soon as no job can be started.")
@click.option("--managed-in", type=click.Path(path_type=Path), hidden=True)
@click.option("--slot-file", type=int, hidden=True)
@click.option(
    "--metrics-port", type=int, help="Serve /metrics and /livez on this port; 0: any free port."
)
@click.option(
    "--metrics-host", help="Address of the metrics; other than 127.0.0.1 it needs http.tokens."
)
@log_options
@store_options
def worker(
    store: StoreChoice,
    queues: tuple[str, ...],
    tenants: str | None,
    without_tenant: tuple[str, ...],
    concurrency: int | None,
    lease_timeout_seconds: float | None,
    poll_interval_ms: float | None,
    shutdown_grace_seconds: float | None,
    until_idle: bool,
    managed_in: Path | None,
    slot_file: int | None,
    metrics_port: int | None,
    metrics_host: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Run the jobs of an app.

    SIGTERM or Ctrl-C drains the worker: it claims no more jobs, and running jobs may end within
    the grace period. A second SIGTERM stops running jobs at once: by on_drain they return to
    the queue or, as lane jobs do by default, are paused. SIGUSR1 drains the worker only if it holds
    no job.

    Exit codes: 0 drained, 3 the store refused the login or the rights at the start, 70 a part
    crashed, 75 a handler could not be stopped and the process should be replaced.
    """
    set_up_logs(log_level, log_format)
    raise_limit()
    app = app_with_tasks(store)
    if managed_in is None:  # else the manager has logged the same warnings
        warn_of_unknown_variables(log.warning)
        if store.app is None:
            log.warning("no --app is given: this worker knows no tasks of yours")
    try:
        code = app.run_worker(
            tenants=tenant_selection(tenants),
            without_tenants=without_tenant,
            queues=queues or None,
            concurrency=concurrency,
            lease_timeout_seconds=lease_timeout_seconds,
            poll_interval_ms=poll_interval_ms,
            shutdown_grace_seconds=shutdown_grace_seconds,
            until_idle=until_idle,
            managed_in=managed_in,
            slot_file=slot_file,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            tokens=_read_tokens(metrics_port is not None),
            child_setup=ChildSetup(store.app_module, partial(set_up_logs, log_level, log_format)),
        )
    finally:
        app.close()
    if left := threads_left():
        threads = count(len(left), "thread")
        log.error("the process exits although %s of asyncio.to_thread did not end", threads)
        logging.shutdown()
        os._exit(code)
    raise click.exceptions.Exit(code)


def _read_tokens(are_needed: bool) -> tuple[Token, ...] | None:
    """The tokens of the metrics. Their variables are removed: handlers need none of them."""
    texts = load().http.tokens
    tokens = tokens_of(texts) if are_needed else None
    for name in token_variables(texts):
        os.environ.pop(name, None)
    return tokens


def tenant_selection(tenants: str | None) -> TenantSelection:
    if tenants is None or tenants == "all":
        return tenants
    return [check_tenant(name.strip()) for name in tenants.split(",")]


def app_with_tasks(store: StoreChoice) -> Freehold:
    """The app with its tasks, on the store that the options name."""
    app = store.app or Freehold(store.url, schema=store.schema)
    if store.url is not None:
        app.url = store.url
    if store.schema is not None:
        app.schema = store.schema
    return app if store.tenant is None else app.tenant(store.tenant)
