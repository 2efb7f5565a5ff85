"""Schedules as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.render import at, since, span
from freehold.cli.table import ListTable
from freehold.cli.text import one_line
from freehold.model.plural import count
from freehold.operator_schedules import ScheduleInfo, ScheduleState

_STYLE = {
    ScheduleState.ACTIVE: "green",
    ScheduleState.SKIPPING: "bold red",
    ScheduleState.PAUSED: "yellow",
    ScheduleState.ENDED: "dim",
    ScheduleState.BROKEN: "bold red",
}


def schedule_table(found: Sequence[ScheduleInfo], now: datetime) -> RenderableType:
    if not found:
        return Text(
            "no schedules: declare one with @app.cron(...) or app.schedule(...), and start a "
            "worker",
            style="dim",
        )
    table = ListTable(
        "schedule",
        "state",
        "next",
        "time",
        "detail",
        names=("schedule",),
        wrapped=("time", "detail"),
    )
    for each in found:
        table.add_row(
            each.name,
            Text(each.state, style=_STYLE[each.state]),
            "" if each.next_at is None else since(each.next_at, now),
            each.time if each.zone in (None, "UTC") else f"{each.time} {each.zone}",
            Text(detail(each), style=_STYLE[each.state] if is_loud(each) else ""),
        )
    return table


def schedule_view(
    schedule: ScheduleInfo, problem: str | None, ticks: Sequence[datetime], now: datetime
) -> RenderableType:
    """One schedule. ``problem``: why it makes no jobs although it should."""
    title = Text.assemble(
        (f"schedule {schedule.name}", "bold"), "  ", (schedule.state, _STYLE[schedule.state])
    )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _facts(schedule, ticks, now):
        table.add_row(f"  {name}", Text(one_line(value)))
    if problem is not None:
        table.add_row("  problem", Text(one_line(problem), style="bold red"))
    return Group(title, table)


def _facts(
    schedule: ScheduleInfo, ticks: Sequence[datetime], now: datetime
) -> Iterator[tuple[str, str]]:
    yield "time", schedule.time + (f" {schedule.zone}" if schedule.zone else "")
    yield "task", f"{schedule.task}, queue {schedule.queue}"
    yield "overlap", schedule.overlap
    within = "" if schedule.within_seconds is None else f", within {span(schedule.within_seconds)}"
    yield "catch up", f"{schedule.catch_up}{within}"
    if schedule.jitter_seconds:
        yield "jitter", span(schedule.jitter_seconds)
    if schedule.ends_at is not None:
        yield "ends", at(schedule.ends_at)
    for number, tick in enumerate(ticks):
        yield "" if number else "next ticks", f"{at(tick)}, {since(tick, now)}"
    if schedule.last_at is not None:
        yield "last tick", f"{at(schedule.last_at)}, {since(schedule.last_at, now)}"
    if schedule.last_job is not None:
        yield "last job", f"{schedule.last_job}, {schedule.last_job_state or 'no longer stored'}"
    yield "ticks", f"{schedule.fired} fired, {schedule.skipped} skipped, {schedule.missed} missed"
    if schedule.declared_by is not None:
        yield "declared", f"by the app {schedule.declared_by}"
    if schedule.is_edited and schedule.edited_at is not None:
        yield "edited", f"by {schedule.edited_by}, {since(schedule.edited_at, now)}"
    if schedule.state is ScheduleState.PAUSED:
        yield "paused", _pause(schedule)


def is_loud(schedule: ScheduleInfo) -> bool:
    return schedule.state in (ScheduleState.SKIPPING, ScheduleState.BROKEN)


def detail(schedule: ScheduleInfo) -> str:
    """What is unusual about it, the most important first."""
    parts = []
    if schedule.state is ScheduleState.BROKEN:
        parts.append(one_line(schedule.problem or ""))
    if schedule.state is ScheduleState.SKIPPING:
        parts.append(f"SKIPS: waits for job {schedule.skipped_for} ({schedule.skipped_for_state})")
    if schedule.state is ScheduleState.PAUSED:
        parts.append(f"paused {_pause(schedule)}")
    if schedule.skipped:
        last = f", the last for job {schedule.skipped_for}" if schedule.skipped_for else ""
        parts.append(f"{count(schedule.skipped, 'tick')} skipped{last}")
    if schedule.missed:
        parts.append(f"{schedule.missed} missed")
    if schedule.is_edited:
        parts.append(f"edited by {schedule.edited_by}")
    return "; ".join(parts)


def _pause(schedule: ScheduleInfo) -> str:
    until = f" until {at(schedule.paused_until)}" if schedule.paused_until else ""
    why = f": {one_line(schedule.pause_reason)}" if schedule.pause_reason else ""
    return f"by {schedule.paused_by}{until}{why}"


def schedules_line(found: Sequence[ScheduleInfo], now: datetime) -> Text:
    """For `top`: how many, the next, and those that make no jobs although they should."""
    line = Text("Schedules", style="bold underline", no_wrap=True, overflow="ellipsis")
    coming = [each for each in found if each.next_at is not None]
    following = min(coming, key=lambda each: each.next_at or now, default=None)
    text = str(len(found))
    if following is not None and following.next_at is not None:
        text += f", next {following.name} {since(following.next_at, now)}"
    line.append(f"   {text}", style="not bold not underline dim")
    loud = [each for each in found if is_loud(each)]
    for each in loud[:1]:
        line.append(f"   {each.name} {detail(each)}", style="not underline bold red")
    if len(loud) > 1:
        line.append(f" and {len(loud) - 1} more", style="not underline bold red")
    return line
