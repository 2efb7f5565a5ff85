"""`freehold tenants`: list, create, pause, move and drop tenants."""

from __future__ import annotations

import click

from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    by_option,
    print_json,
    store_options,
)
from freehold.cli.errors import REFUSED
from freehold.cli.progress import progress
from freehold.cli.render import show, tenant_table
from freehold.cli.text import one_line
from freehold.cli.types import duration
from freehold.model.audit import CLI, Author
from freehold.model.plural import count
from freehold.model.tenant import HOME_SHARD
from freehold.tenants.tenants import TenantMigration, Tenants

slots_option = click.option(
    "--max-slots", type=int, help="Maximum number of its jobs running in one process."
)


@click.group(cls=StoreGroup, invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def tenants(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List and manage tenants.

    Each tenant has its own jobs, in its own schema or file. With --tenant NAME every other
    command works on the jobs of that tenant.
    """
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.tenants.all()
        interrupted = app.tenants.interrupted_moves()
        now = app.operator.now()
    if as_json:
        print_json({"tenants": found})
    else:
        show(tenant_table(found, now))
        for message in interrupted:
            click.echo(message, err=True)


@tenants.command()
@click.argument("name")
@click.option(
    "--shard", default=HOME_SHARD, show_default=True, help="Database of the tenant: see [shards]."
)
@click.option("--weight", type=float, default=1.0, show_default=True, help="Share of the workers.")
@slots_option
@author_options
@as_json
@store_options
def create(
    store: StoreChoice,
    name: str,
    shard: str,
    weight: float,
    max_slots: int | None,
    author: Author,
    as_json: bool,
) -> None:
    """Create the tenant NAME."""
    with store.open(may_create=True) as app:
        app.migrate()
        made = app.tenants.create(name, shard, weight, max_slots, author=author)
    if as_json:
        print_json(made)
    else:
        click.echo(f"tenant {name} created in shard {shard}")


@tenants.command()
@click.argument("name")
@click.option(
    "--force", is_flag=True, help="Drop it even if it has live jobs or schedules, which are lost."
)
@author_options
@as_json
@store_options
def drop(store: StoreChoice, name: str, force: bool, author: Author, as_json: bool) -> None:
    """Drop the tenant NAME with all its data."""
    with store.open() as app:
        app.tenants.drop(name, force=force, author=author)
    if as_json:
        print_json({"name": name, "dropped": True})
    else:
        click.echo(f"tenant {name} dropped")


@tenants.command()
@click.argument("name")
@click.option("--reason", help="Reason, shown in the list and by `freehold job explain`.")
@by_option
@as_json
@store_options
def pause(store: StoreChoice, name: str, reason: str | None, by: str, as_json: bool) -> None:
    """Pause the tenant NAME. Its jobs are not claimed; running jobs continue."""
    with store.open() as app:
        app.tenants.pause(name, by, reason, CLI)
    if as_json:
        print_json({"name": name, "paused": True})
    else:
        click.echo(f"tenant {name} is paused")


@tenants.command()
@click.argument("name")
@author_options
@as_json
@store_options
def resume(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Resume a paused or degraded tenant. A degraded tenant must be repaired first."""
    with store.open() as app:
        was_paused = app.tenants.resume(name, author)
    if as_json:
        print_json({"name": name, "paused": False, "was_paused": was_paused})
    else:
        click.echo(f"tenant {name} resumed" if was_paused else f"tenant {name} was not paused")


@tenants.command("set-weight")
@click.argument("name")
@click.argument("weight", type=float)
@slots_option
@author_options
@as_json
@store_options
def set_weight(
    store: StoreChoice,
    name: str,
    weight: float,
    max_slots: int | None,
    author: Author,
    as_json: bool,
) -> None:
    """Set the weight of the tenant NAME. A tenant of weight 2 gets twice the share of a tenant of
    weight 1, which is the default."""
    with store.open() as app:
        app.tenants.set_weight(name, weight, max_slots, author)
    if as_json:
        print_json({"name": name, "weight": weight, "max_slots": max_slots})
    else:
        slots = "" if max_slots is None else f", at most {count(max_slots, 'slot')} in a process"
        click.echo(f"tenant {name} has weight {weight:g}{slots}")


@tenants.command()
@as_json
@store_options
def migrate(store: StoreChoice, as_json: bool) -> None:
    """Migrate the directory and every tenant. A tenant that fails does not stop the others."""
    with store.open() as app:
        app.migrate()
        done = _migrated(app.tenants, quiet=as_json)
    if as_json:
        print_json({"tenants": done})
    else:
        for each in done:
            applied = f"{count(each.applied, 'migration')} applied"
            click.echo(f"{each.tenant}: {one_line(each.error) if each.error else applied}")
    if any(each.error for each in done):
        raise click.exceptions.Exit(REFUSED)


def _migrated(tenants: Tenants, *, quiet: bool) -> list[TenantMigration]:
    every = tenants.all()
    done: list[TenantMigration] = []
    with progress("tenants", len(every), quiet=quiet) as report:
        for tenant in every:
            report(len(done), tenant.name, _failures(done))
            done.append(tenants.migrate_one(tenant))
    return done


def _failures(done: list[TenantMigration]) -> str:
    failed = sum(each.error is not None for each in done)
    return f"{failed} failed" if failed else ""


@tenants.command()
@click.argument("name")
@click.argument("shard")
@click.option(
    "--timeout",
    type=duration,
    default="60s",
    show_default=True,
    help="Time that its running jobs get to end.",
)
@as_json
@store_options
def move(store: StoreChoice, name: str, shard: str, timeout: float, as_json: bool) -> None:
    """Move the tenant NAME to another SHARD.

    No job is lost or doubled. During the move the tenant's jobs are not claimed, and for a short
    time at the end none can be enqueued. Repeat the command to continue an interrupted move, or
    name the old shard to undo it.
    """
    with store.open() as app:
        with progress(f"moving {name}", quiet=as_json) as report:
            done: list[str] = []
            for step in app.tenants.move_steps(name, shard, timeout):
                done.append(step)
                report(len(done), f"done: {', '.join(done)}")
        tenant = app.tenants.get(name)
    if as_json:
        print_json(tenant)
    else:
        click.echo(f"tenant {name} is in shard {tenant.shard}")


@tenants.command()
@as_json
@store_options
def shards(store: StoreChoice, as_json: bool) -> None:
    """List the shards, the databases of the tenants."""
    with store.open() as app:
        known = {name: app.tenants.shards[name].shown for name in app.tenants.shards.names}
    if as_json:
        print_json({"shards": known})
    else:
        for name, shown in known.items():
            click.echo(f"{name}: {shown}")
