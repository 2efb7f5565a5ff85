"""`freehold tenants`: who they are, where they live, and how they stand."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, as_json, by_option, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.progress import progress
from freehold.cli.render import show, tenant_table
from freehold.cli.text import one_line
from freehold.cli.types import span
from freehold.model.tenant import HOME_SHARD
from freehold.tenants.tenants import TenantMigration, Tenants

slots_option = click.option(
    "--max-slots", type=int, help="At most so many of its jobs at a time in one process."
)


@click.group(invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def tenants(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List tenants. Each has jobs of its own, in a schema or file of its own.

    Every other command works on a tenant's jobs with --tenant NAME.
    """
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.tenants.all()
        now = app.operate.now()
    if as_json:
        print_json({"tenants": found})
    else:
        show(tenant_table(found, now))


@tenants.command()
@click.argument("name")
@click.option(
    "--place", default=HOME_SHARD, show_default=True, help="Where it lives: see [places]."
)
@click.option("--weight", type=float, default=1.0, show_default=True, help="Its share of workers.")
@slots_option
@as_json
@store_options
def create(
    store: StoreChoice, name: str, place: str, weight: float, max_slots: int | None, as_json: bool
) -> None:
    """Make the tenant NAME."""
    with store.open(may_create=True) as app:
        app.migrate()
        made = app.tenants.create(name, place, weight, max_slots)
    if as_json:
        print_json(made)
    else:
        click.echo(f"tenant {name} lives in {place}")


@tenants.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Also with live jobs, which are lost.")
@as_json
@store_options
def drop(store: StoreChoice, name: str, force: bool, as_json: bool) -> None:
    """Remove the tenant NAME with everything it has."""
    with store.open() as app:
        app.tenants.drop(name, force=force)
    if as_json:
        print_json({"name": name, "dropped": True})
    else:
        click.echo(f"tenant {name} is gone")


@tenants.command()
@click.argument("name")
@click.option("--reason", help="Why; the list and `explain` tell it.")
@by_option
@as_json
@store_options
def pause(store: StoreChoice, name: str, reason: str | None, by: str, as_json: bool) -> None:
    """Hold back the tenant NAME: nothing of it is claimed. What runs goes on."""
    with store.open() as app:
        app.tenants.pause(name, by, reason)
    if as_json:
        print_json({"name": name, "paused": True})
    else:
        click.echo(f"tenant {name} is paused")


@tenants.command()
@click.argument("name")
@as_json
@store_options
def resume(store: StoreChoice, name: str, as_json: bool) -> None:
    """Let the tenant NAME go on; also one that was found broken and is mended."""
    with store.open() as app:
        stood_still = app.tenants.resume(name)
    if as_json:
        print_json({"name": name, "paused": False, "was_paused": stood_still})
    else:
        click.echo(f"tenant {name} goes on" if stood_still else f"tenant {name} was not paused")


@tenants.command()
@click.argument("name")
@click.argument("weight", type=float)
@slots_option
@as_json
@store_options
def weigh(
    store: StoreChoice, name: str, weight: float, max_slots: int | None, as_json: bool
) -> None:
    """Give the tenant NAME its share of the workers: WEIGHT beside 1 for every other tenant."""
    with store.open() as app:
        app.tenants.weigh(name, weight, max_slots)
    if as_json:
        print_json({"name": name, "weight": weight, "max_slots": max_slots})
    else:
        slots = "" if max_slots is None else f", at most {max_slots} slots in a process"
        click.echo(f"tenant {name} weighs {weight:g}{slots}")


@tenants.command()
@as_json
@store_options
def migrate(store: StoreChoice, as_json: bool) -> None:
    """Bring the directory and every tenant up to date. One that fails does not stop the others."""
    with store.open() as app:
        app.migrate()
        done = _migrated(app.tenants, quiet=as_json)
    if as_json:
        print_json({"tenants": done})
    else:
        for each in done:
            what = one_line(each.trouble) if each.trouble else f"{each.applied} migrations applied"
            click.echo(f"{each.tenant}: {what}")
    if any(each.trouble for each in done):
        raise click.exceptions.Exit(REFUSED)


def _migrated(tenancy: Tenants, *, quiet: bool) -> list[TenantMigration]:
    lines = tenancy.all()
    done: list[TenantMigration] = []
    with progress("tenants", len(lines), quiet=quiet) as tell:
        for line in lines:
            tell(len(done), line.name, _failures(done))
            done.append(tenancy.migrate_one(line))
    return done


def _failures(done: list[TenantMigration]) -> str:
    failed = sum(each.trouble is not None for each in done)
    return f"{failed} failed" if failed else ""


@tenants.command()
@click.argument("name")
@click.argument("place")
@click.option(
    "--timeout",
    type=span,
    default="60s",
    show_default=True,
    help="How long its running jobs may take to end.",
)
@as_json
@store_options
def move(store: StoreChoice, name: str, place: str, timeout: float, as_json: bool) -> None:
    """Move the tenant NAME to another PLACE, losing and doubling nothing.

    Its jobs are not claimed meanwhile; at the end nothing can be enqueued for a moment. A move
    that was interrupted goes on when it is repeated; moved to where it still is, it is taken back.
    """
    with store.open() as app:
        with progress(f"moving {name}", quiet=as_json) as tell:
            done: list[str] = []
            for step in app.tenants.moving(name, place, timeout):
                done.append(step)
                tell(len(done), f"done: {', '.join(done)}")
        line = app.tenants.get(name)
    if as_json:
        print_json(line)
    else:
        click.echo(f"tenant {name} lives in {line.place}")


@tenants.command()
@as_json
@store_options
def places(store: StoreChoice, as_json: bool) -> None:
    """List the places where tenants can live."""
    with store.open() as app:
        known = {name: app.tenants.places[name].shown for name in app.tenants.places.names}
    if as_json:
        print_json({"places": known})
    else:
        for name, shown in known.items():
            click.echo(f"{name}: {shown}")
