"""`scripts/chaos`: real processes under faults, and a check of their records."""

from __future__ import annotations

import logging
import secrets
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click
import msgspec
from rich.console import Console

from freehold.worker.event_loop import run_loop
from tests.chaos.cluster import what_is_missing
from tests.chaos.plan import Plan, StoreKind, faults_for, on_cluster
from tests.chaos.pooler import pooler_is_installed
from tests.chaos.report import show
from tests.chaos.world import World


@click.command()
@click.option(
    "--minutes", type=float, default=2.0, show_default=True, help="Duration of the faults."
)
@click.option("--store", type=click.Choice(["postgres", "sqlite"]), default="postgres")
@click.option("--seed", type=int, help="Seed of the load and the faults.")
@click.option("--rate", type=float, help="Jobs per second: 150 unless given, 30 with --patroni.")
@click.option("--flows", type=float, default=1.0, show_default=True, help="Flows per second.")
@click.option("--calm", is_flag=True, help="The load without faults, for comparison.")
@click.option("--only", multiple=True, metavar="FAULT", help="Only faults of this kind.")
@click.option("--pgbouncer", is_flag=True, help="Put PgBouncer in transaction mode in front.")
@click.option("--patroni", is_flag=True, help="Three nodes under Patroni, and faults of nodes.")
@click.option("--asynchronous", is_flag=True, help="With --patroni: no commit waits for a standby.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path), help="Write the result to this file."
)
@click.option("--folder", type=click.Path(path_type=Path), help="Folder for records and logs.")
def main(
    minutes: float,
    store: StoreKind,
    seed: int | None,
    rate: float | None,
    flows: float,
    calm: bool,
    only: tuple[str, ...],
    pgbouncer: bool,
    patroni: bool,
    asynchronous: bool,
    file: Path | None,
    folder: Path | None,
) -> None:
    """Run producers and workers under load while processes, connections and the database fail.

    Exit code 1: there is a violation. The records of all processes stay in the folder.
    """
    _check_options(store, pgbouncer=pgbouncer, patroni=patroni, asynchronous=asynchronous)
    logging.basicConfig(level=logging.WARNING)
    plan = Plan(
        store=store,
        seconds=60.0 * minutes,
        seed=secrets.randbelow(10**6) if seed is None else seed,
        folder=folder or Path(tempfile.mkdtemp(prefix="freehold-chaos-")),
        jobs_per_second=rate or 150.0,
        flows_per_second=flows,
        faults={} if calm else faults_for(store, pooled=pgbouncer),
        pooled=pgbouncer,
    )
    if patroni:
        plan = on_cluster(plan, rate or 30.0, asynchronous=asynchronous, calm=calm)
    if unknown := [kind for kind in only if kind not in plan.faults]:
        raise click.UsageError(f"no fault {unknown[0]!r} here: choose of {', '.join(plan.faults)}")
    if only:
        plan = replace(plan, faults={kind: plan.faults[kind] for kind in only})
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


def _check_options(store: StoreKind, *, pgbouncer: bool, patroni: bool, asynchronous: bool) -> None:
    if (pgbouncer or patroni) and store != "postgres":
        raise click.UsageError("--pgbouncer and --patroni need --store postgres")
    if pgbouncer and patroni:
        raise click.UsageError("--patroni goes without --pgbouncer")
    if asynchronous and not patroni:
        raise click.UsageError("--asynchronous needs --patroni")
    if pgbouncer and not pooler_is_installed():
        raise click.ClickException("PgBouncer is not installed (Debian's package `pgbouncer`)")
    if patroni and (missing := what_is_missing()):
        raise click.ClickException("\n".join(["--patroni needs more programs:", *missing]))


if __name__ == "__main__":
    main()
