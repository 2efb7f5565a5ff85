"""Schedules: declared by apps, changed by operators. `fire.py` fires them.

Each change is read, decided in pure Python, and written guarded by what was read; it is decided
again if a sweep or another change came first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from freehold.errors import BadInput, Refused, ScheduleNotFound, StoreUnavailable
from freehold.model import schedule_changes
from freehold.model.audit import Author
from freehold.model.schedule import ScheduleDefinition
from freehold.model.schedule_changes import Schedule, has_tick, new_schedule
from freehold.model.timestamps import maybe_time, time_of
from freehold.store import notifications
from freehold.store.rows import json_text
from freehold.store.schedule_text import from_text, to_text
from freehold.store.statements import Row, Statement, Verb, read, together, write
from freehold.store.verbs.queries import now as read_now
from freehold.store.verbs.queries import wait_for_standbys

_TRIES = 20
_WRITE_BATCH = 1000


def schedules(after: str = "", limit: int = 100) -> Verb[list[Schedule]]:
    """A page of schedules, by name."""
    rows = yield from read("schedules", after=after, limit=limit)
    return [schedule_of(row) for row in rows]


def read_schedule(name: str) -> Verb[Schedule | None]:
    rows = yield from read("read_schedules", names=[name], app=None)
    return schedule_of(rows[0]) if rows else None


def drop_schedule(name: str, author: Author | None = None) -> Verb[bool]:
    """Returns whether there was one. Its jobs stay."""
    before = yield from read_schedule(name)
    row = {"name": name, **_record(author, "drop", before, None)}
    rows = yield from write("drop_schedule", [row])
    return bool(rows)


# -- changing --------------------------------------------------------------------------------


def put_schedule(
    definition: ScheduleDefinition, by: str, author: Author | None = None
) -> Verb[Schedule]:
    """Store a schedule, or change the one of this name."""
    text = to_text(definition)
    for _ in range(_TRIES):
        now = yield from read_now()
        before = yield from read_schedule(definition.name)
        if before is None:
            schedule = new_schedule(definition, text, now, by=by)
            if (yield from _insert([schedule], author, "put")):
                return schedule
        else:
            schedule = schedule_changes.edited(before, definition, text, now, by)
            if (yield from _update([(before, schedule)], author, "put")):
                return schedule
    raise _busy(definition.name)


def change_schedule(
    name: str,
    change: Callable[[Schedule, datetime], Schedule | None],
    author: Author | None = None,
    verb: str = "edit",
) -> Verb[Schedule | None]:
    """Read, change and write a schedule; again if a sweep was faster. Returns None if the change
    did so."""
    for _ in range(_TRIES):
        now = yield from read_now()
        before = yield from read_schedule(name)
        if before is None:
            raise not_found(name)
        after = change(before, now)
        if after is None:
            yield from wait_for_standbys()
            return None
        if (yield from _update([(before, after)], author, verb)):
            return after
    raise _busy(name)


def reset_schedule(name: str, author: Author | None = None) -> Verb[Schedule]:
    """Back to what its app declared last."""

    def to_declared(schedule: Schedule, now: datetime) -> Schedule:
        if schedule.declared is None:
            raise Refused(f"no app declares schedule {name}: there is nothing to go back to")
        definition = from_text(name, schedule.declared)
        return schedule_changes.edited(schedule, definition, schedule.declared, now, None)

    schedule = yield from change_schedule(name, to_declared, author, "reset")
    assert schedule is not None
    return schedule


def declare_schedules(app: str, definitions: Sequence[ScheduleDefinition]) -> Verb[list[str]]:
    """What an app declares when its worker starts. Writes only differences; what the app no longer
    declares is paused. Schedules of other apps are not touched, and a new one that has no tick
    before its end is left out. Returns the changed names."""
    texts = {each.name: to_text(each) for each in definitions}
    for _ in range(_TRIES):
        now = yield from read_now()
        rows = yield from read("read_schedules", names=sorted(texts), app=app)
        stored = {schedule.name: schedule for schedule in map(schedule_of, rows)}
        new, changed = _differences(app, definitions, texts, stored, now)
        if not new and not changed:
            return []
        written = yield from _write_in_parts(new, changed)
        if written == len(new) + len(changed):
            return [each.name for each in new] + [before.name for before, _ in changed]
    raise _busy(app)


def _differences(
    app: str,
    definitions: Sequence[ScheduleDefinition],
    texts: dict[str, str],
    stored: dict[str, Schedule],
    now: datetime,
) -> tuple[list[Schedule], list[tuple[Schedule, Schedule]]]:
    new: list[Schedule] = []
    changed: list[tuple[Schedule, Schedule]] = []
    for each in definitions:
        before = stored.pop(each.name, None)
        if before is None:
            if has_tick(each, now):  # code outlives its ends_at: its workers start on a new store
                new.append(new_schedule(each, texts[each.name], now, app=app))
            continue
        after = schedule_changes.declared(before, each, texts[each.name], now, app)
        if after is not None:
            changed.append((before, after))
    changed += [
        (before, schedule_changes.undeclared(before, now, app))
        for before in stored.values()
        if before.undeclared_at is None
    ]
    return new, changed


def _write_in_parts(
    new: Sequence[Schedule], changed: Sequence[tuple[Schedule, Schedule]]
) -> Verb[int]:
    written = 0
    for start in range(0, len(new), _WRITE_BATCH):
        written += yield from _insert(new[start : start + _WRITE_BATCH])
    for start in range(0, len(changed), _WRITE_BATCH):
        written += yield from _update(changed[start : start + _WRITE_BATCH])
    return written


def _insert(new: Sequence[Schedule], author: Author | None = None, verb: str = "") -> Verb[int]:
    rows = [_row(schedule) | _record(author, verb, None, schedule) for schedule in new]
    answers = yield from together(
        Statement("insert_schedules", {}, rows),
        notification=notifications.notify_after({notifications.SCHEDULED}),
    )
    return len(answers[0])


def _update(
    changes: Sequence[tuple[Schedule, Schedule]], author: Author | None = None, verb: str = ""
) -> Verb[int]:
    rows = [
        {
            **_row(after),
            **_record(author, verb, before, after),
            "seen_at": before.next_at,
            "seen_edit": before.edit,
            "seen_counted_to": before.counted_to,
        }
        for before, after in changes
    ]
    answers = yield from together(
        Statement("update_schedules", {}, rows),
        notification=notifications.notify_after({notifications.SCHEDULED}),
    )
    return len(answers[0])


def _record(
    author: Author | None, verb: str, before: Schedule | None, after: Schedule | None
) -> dict[str, Any]:
    """For the audit; without an author it records nothing."""
    return {
        "by": None if author is None else author.by,
        "via": None if author is None else author.via,
        "reason": None if author is None else author.reason,
        "verb": verb,
        "before": _audited(before),
        "after": _audited(after),
    }


def _audited(schedule: Schedule | None) -> str | None:
    """What people decide about a schedule; never the arguments of its jobs."""
    if schedule is None:
        return None
    definition = schedule.definition
    values = {
        "time": None if definition is None else str(definition.timing),
        "overlap": None if definition is None else definition.overlap,
        "catch_up": None if definition is None else definition.catch_up,
        "task": None if definition is None else definition.job.task,
        "paused_by": schedule.paused_by,
        "pause_reason": schedule.pause_reason,
        "paused_until": schedule.paused_until,
    }
    return json_text({name: value for name, value in values.items() if value is not None})


def _busy(name: str) -> StoreUnavailable:
    return StoreUnavailable(f"schedule {name} kept changing while it was read: try again")


def not_found(name: str) -> ScheduleNotFound:
    return ScheduleNotFound(f"there is no schedule {name}: see `freehold schedules`")


# -- rows ------------------------------------------------------------------------------------


def schedule_of(row: Row) -> Schedule:
    """Columns as in `_schedule_columns.sql`."""
    name, text = row[0], row[1]
    definition, problem = None, row[14]
    try:
        definition = from_text(name, text)
    except BadInput as error:
        problem = str(error)
    return Schedule(
        name=name,
        definition=definition,
        text=text,
        created_at=time_of(row[2]),
        anchor_at=time_of(row[3]),
        counted_to=time_of(row[4]),
        next_at=maybe_time(row[5]),
        edit=row[6],
        last_at=maybe_time(row[7]),
        last_job=row[8],
        fired=row[9],
        missed=row[10],
        skipped=row[11],
        skipped_at=maybe_time(row[12]),
        skipped_for=row[13],
        problem=problem,
        declared=row[15],
        declared_by=row[16],
        undeclared_at=maybe_time(row[17]),
        edited_at=maybe_time(row[18]),
        edited_by=row[19],
        paused_at=maybe_time(row[20]),
        paused_by=row[21],
        pause_reason=row[22],
        paused_until=maybe_time(row[23]),
    )


_WRITTEN = (
    "name",
    "anchor_at",
    "counted_to",
    "next_at",
    "declared",
    "declared_by",
    "undeclared_at",
    "edited_at",
    "edited_by",
    "paused_at",
    "paused_by",
    "pause_reason",
    "paused_until",
)


def _row(schedule: Schedule) -> dict[str, Any]:
    return {"definition": schedule.text, **{each: getattr(schedule, each) for each in _WRITTEN}}
