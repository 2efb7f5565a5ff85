"""`scripts/chaos`: real processes under faults, and a check of their records."""

from __future__ import annotations

import logging
import secrets
import sys
import tempfile
from pathlib import Path

import click
import msgspec
from rich.console import Console

from freehold.worker.event_loop import run_loop
from tests.chaos.plan import Plan, StoreKind, faults_for
from tests.chaos.pooler import pooler_is_installed
from tests.chaos.report import show
from tests.chaos.world import World


@click.command()
@click.option(
    "--minutes", type=float, default=2.0, show_default=True, help="Duration of the faults."
)
@click.option("--store", type=click.Choice(["postgres", "sqlite"]), default="postgres")
@click.option("--seed", type=int, help="Seed of the load and the faults.")
@click.option("--rate", type=float, default=150.0, show_default=True, help="Jobs per second.")
@click.option("--calm", is_flag=True, help="The load without faults, for comparison.")
@click.option("--pgbouncer", is_flag=True, help="Put PgBouncer in transaction mode in front.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write the result to this file."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Folder for records and logs.")
def main(
    minutes: float,
    store: StoreKind,
    seed: int | None,
    rate: float,
    calm: bool,
    pgbouncer: bool,
    file: Path | None,
    folder: Path | None,
) -> None:
    """Run producers and workers under load while processes, connections and the database fail.

    Exit code 1: there is a violation. The records of all processes stay in the folder.
    """
    if pgbouncer and not pooler_is_installed():
        raise click.ClickException("PgBouncer is not installed (Debian's package `pgbouncer`)")
    if pgbouncer and store != "postgres":
        raise click.UsageError("--pgbouncer needs --store postgres")
    logging.basicConfig(level=logging.WARNING)
    plan = Plan(
        store=store,
        seconds=60.0 * minutes,
        seed=secrets.randbelow(10**6) if seed is None else seed,
        folder=folder or Path(tempfile.mkdtemp(prefix="freehold-chaos-")),
        jobs_per_second=rate,
        faults={} if calm else faults_for(store, pooled=pgbouncer),
        pooled=pgbouncer,
    )
    status = Console(stderr=True)
    status.print(f"seed {plan.seed}, folder {plan.folder}")
    if status.is_terminal:
        with status.status("starting") as line:
            report = run_loop(World(plan, line.update).run())
    else:
        report = run_loop(World(plan, lambda text: print(text, file=sys.stderr)).run())
    show(report, Console())
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    sys.exit(0 if report.holds else 1)


if __name__ == "__main__":
    main()
