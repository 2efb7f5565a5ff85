"""`freehold schedules`: list, pause, edit, run and backfill schedules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, get_args

import click

from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.pause_options import pause_options, print_paused, print_resumed
from freehold.cli.render import at, show
from freehold.cli.schedule_view import schedule_table, schedule_view
from freehold.cli.types import duration, timestamp
from freehold.errors import BadInput
from freehold.model.audit import CLI, Author
from freehold.model.findings import schedule_problem
from freehold.model.plural import count
from freehold.model.schedule import CatchUp, Overlap
from freehold.model.timing import Cron, Every, Timing
from freehold.operator_schedules import ScheduleInfo

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=StoreGroup, invoke_without_command=True)
@click.option("--after", default="", metavar="NAME", help="Next page: begin after this schedule.")
@click.option("--limit", default=100, show_default=True, help="Schedules on one page.")
@as_json
@store_options
@click.pass_context
def schedules(
    context: click.Context, store: StoreChoice, after: str, limit: int, as_json: bool
) -> None:
    """List schedules; pause, edit, run and drop them.

    A schedule makes a job at each tick of a cron expression or an interval.
    """
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        found = app.operator.schedules(after, limit)
        now = app.operator.now()
    if as_json:
        print_json({"schedules": found, "next": found[-1].name if len(found) == limit else None})
    else:
        show(schedule_table(found, now))


@schedules.command("list")
@as_json
@store_options
@click.pass_context
def list_schedules(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List all schedules."""
    with store.open() as app:
        found: list[ScheduleInfo] = []
        while page := app.operator.schedules(found[-1].name if found else ""):
            found += page
        now = app.operator.now()
    if as_json:
        print_json({"schedules": found, "next": None})
    else:
        show(schedule_table(found, now))


@schedules.command("show")
@click.argument("name")
@as_json
@store_options
def show_schedule(store: StoreChoice, name: str, as_json: bool) -> None:
    """Show the schedule NAME and its next ticks.

    If it makes no jobs and should, the reason is shown, too.
    """
    with store.open() as app:
        operator = app.operator
        info, ticks, now = operator.schedule(name), operator.next_runs(name, 3), operator.now()
        known = {task for worker in operator.workers() for task in worker.tasks}
    if as_json:
        print_json(info)
    else:
        show(schedule_view(info, schedule_problem(info, now, known), ticks, now))


@schedules.command("next")
@click.argument("name")
@click.option("--count", "runs", default=5, show_default=True, help="How many ticks.")
@as_json
@store_options
def next_runs(store: StoreChoice, name: str, runs: int, as_json: bool) -> None:
    """Show the next ticks of the schedule NAME."""
    with store.open() as app:
        ticks = app.operator.next_runs(name, runs)
        info = app.operator.schedule(name)
    if as_json:
        print_json({"name": name, "next": ticks})
    elif not ticks:
        click.echo(f"schedule {name} is {info.state}: it has no next tick")
    for tick in () if as_json else ticks:
        click.echo(at(tick))


@schedules.command()
@click.argument("name")
@pause_options
@as_json
@store_options
def pause(
    store: StoreChoice,
    name: str,
    reason: str | None,
    until: datetime | None,
    by: str,
    as_json: bool,
) -> None:
    """Pause the schedule NAME. Ticks of the pause make no jobs, also not afterwards."""
    with store.open() as app:
        app.operator.pause_schedule(name, by=by, reason=reason, until=until, via=CLI)
    print_paused("schedule", "name", name, until, as_json)


@schedules.command()
@click.argument("name")
@author_options
@as_json
@store_options
def resume(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Resume the schedule NAME. It fires at its next tick."""
    with store.open() as app:
        was_paused = app.operator.resume_schedule(name, **change_by(author))
    print_resumed("schedule", "name", name, was_paused, as_json)


@schedules.command()
@click.argument("name")
@author_options
@as_json
@store_options
def run(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Make a job of the schedule NAME now. It may be paused."""
    with store.open() as app:
        made = app.operator.run_schedule(name, **change_by(author))
    if as_json:
        print_json({"name": name, "job": made.id, "created": made.created})
    elif made.created:
        click.echo(f"job {made.id} of schedule {name} is enqueued")
    else:
        click.echo(f"job {made.id} of schedule {name} is still live, so that none was made")


def timing_options(command: F) -> F:
    for option in (
        click.option("--ends-at", type=timestamp, metavar="TIME", help="The last possible tick."),
        click.option("--jitter", type=duration, metavar="SECONDS", help="Spread of the starts."),
        click.option("--within", type=duration, metavar="AGE", help="The oldest tick to fire."),
        click.option("--catch-up", type=click.Choice(get_args(CatchUp)), help="Missed ticks."),
        click.option("--overlap", type=click.Choice(get_args(Overlap)), help="While a job lives."),
        click.option("--every", type=duration, metavar="INTERVAL", help="An interval: 90s, 15m."),
        click.option(
            "--zone", metavar="ZONE", help="The time zone of --cron. [default: as before]"
        ),
        click.option("--cron", metavar="EXPRESSION", help="A cron expression, as '0 7 * * *'."),
    ):
        command = option(command)
    return command


@schedules.command()
@click.argument("name")
@timing_options
@author_options
@as_json
@store_options
def edit(
    store: StoreChoice,
    name: str,
    cron: str | None,
    zone: str | None,
    every: float | None,
    author: Author,
    as_json: bool,
    **changes: Any,
) -> None:
    """Change the schedule NAME. The edit stays until its code declares something else."""
    with store.open() as app:
        before = app.operator.schedule(name)
        timing = _timing(before, cron, zone, every)
        info = app.operator.edit_schedule(name, timing=timing, **change_by(author), **changes)
    if as_json:
        print_json(info)
    else:
        following = f"next tick: {at(info.next_at)}" if info.next_at else f"it is {info.state}"
        click.echo(f"schedule {name} is changed; {following}")


def _timing(
    before: ScheduleInfo, cron: str | None, zone: str | None, every: float | None
) -> Timing | None:
    if every is not None:
        if cron is not None or zone is not None:
            raise BadInput("--every excludes --cron and --zone: give one of them")
        return Every(seconds=every)
    if cron is None and zone is None:
        return None
    if cron is None and before.zone is None:
        raise BadInput(f"schedule {before.name} is an interval: give --cron with --zone")
    return Cron(cron or before.time, zone or before.zone or "UTC")


@schedules.command()
@click.argument("name")
@click.option("--since", required=True, type=timestamp, metavar="TIME", help="The first tick.")
@click.option("--until", required=True, type=timestamp, metavar="TIME", help="The last tick.")
@author_options
@as_json
@store_options
def backfill(
    store: StoreChoice, name: str, since: datetime, until: datetime, author: Author, as_json: bool
) -> None:
    """Make a job for each tick in a past time. Both ends are included.

    They run one after another, unless its jobs may overlap. Repeated within a day, the command
    makes no tick's job again.
    """
    with store.open() as app:
        made = app.operator.backfill_schedule(name, since, until, **change_by(author))
    new = [each.id for each in made if each.created]
    if as_json:
        print_json({"name": name, "ticks": len(made), "jobs": new})
    else:
        click.echo(f"{count(len(made), 'tick')} of schedule {name}: {count(len(new), 'new job')}")


@schedules.command()
@click.argument("name")
@author_options
@as_json
@store_options
def drop(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Drop the schedule NAME. Its jobs stay; a worker whose code declares it brings it back."""
    with store.open() as app:
        info = app.operator.schedule(name)
        app.operator.drop_schedule(name, **change_by(author))
    if as_json:
        print_json({"name": name, "dropped": True})
        return
    click.echo(f"schedule {name} dropped")
    if info.declared_by is not None:
        click.echo(
            f"freehold: the app {info.declared_by} declares it: its next worker brings it back, "
            "unless you remove it from the code; `freehold schedules pause` lasts longer",
            err=True,
        )


@schedules.command()
@click.argument("name")
@author_options
@as_json
@store_options
def reset(store: StoreChoice, name: str, author: Author, as_json: bool) -> None:
    """Undo edits: back to what the code declares."""
    with store.open() as app:
        info = app.operator.reset_schedule(name, **change_by(author))
    if as_json:
        print_json(info)
    else:
        click.echo(f"schedule {name} is as {info.declared_by} declares it")
