"""A stored schedule, and what operators and code make of it.

Each change takes a schedule as it was read and returns it as it should be. None of them fires a
tick backwards: where the times change, or a pause ends, all ticks up to now are done with.

A pause until a time moves ``next_at`` behind it. The sweep that then fires the schedule ends the
pause, so that no other process has to.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from freehold.errors import BadInput, Refused
from freehold.model.schedule import Due, ScheduleDefinition, due, look_at

_INSTANT = timedelta(microseconds=1)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the store has it. ``definition`` None: it cannot be read here, and ``problem``
    has the reason."""

    name: str
    definition: ScheduleDefinition | None
    #: The definition as it is stored.
    text: str
    created_at: datetime
    anchor_at: datetime
    counted_to: datetime
    next_at: datetime | None
    edit: int = 0
    last_at: datetime | None = None
    last_job: int | None = None
    fired: int = 0
    missed: int = 0
    skipped: int = 0
    skipped_at: datetime | None = None
    skipped_for: int | None = None
    problem: str | None = None
    #: The definition that the app declared last, as it is stored.
    declared: str | None = None
    declared_by: str | None = None
    undeclared_at: datetime | None = None
    edited_at: datetime | None = None
    edited_by: str | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    paused_until: datetime | None = None

    def __repr__(self) -> str:
        """Without the arguments of its job, which may be secret."""
        return f"<Schedule {self.name} next_at={self.next_at}>"

    @property
    def is_edited(self) -> bool:
        """An operator changed what the app declared."""
        return self.declared is not None and self.edited_at is not None

    def is_paused(self, now: datetime) -> bool:
        if self.paused_at is None:
            return False
        return self.paused_until is None or self.paused_until > now

    def position(self, now: datetime) -> datetime:
        """Ticks up to this time make no job any more."""
        if self.paused_at is None:
            return self.counted_to
        until = now if self.paused_until is None else self.paused_until - _INSTANT
        return max(self.counted_to, until)


def readable(schedule: Schedule) -> ScheduleDefinition:
    if schedule.definition is None:
        raise Refused(
            f"schedule {schedule.name} cannot be read here ({schedule.problem}): edit it, or drop "
            "and put it again"
        )
    return schedule.definition


def has_tick(definition: ScheduleDefinition, now: datetime) -> bool:
    """Whether a new schedule would ever fire."""
    return look_at(definition, now, now, now) is not None


def new_schedule(
    definition: ScheduleDefinition,
    text: str,
    now: datetime,
    *,
    app: str | None = None,
    by: str | None = None,
) -> Schedule:
    """It fires at its next tick, never at once. Declared by an app, or put by an operator."""
    next_at = look_at(definition, now, now, now)
    if next_at is None:
        raise BadInput(f"schedule {definition.name} ends before its first tick: change ends_at")
    return Schedule(
        name=definition.name,
        definition=definition,
        text=text,
        created_at=now,
        anchor_at=now,
        counted_to=now,
        next_at=next_at,
        declared=None if app is None else text,
        declared_by=app,
        edited_at=None if by is None else now,
        edited_by=by,
    )


def edited(
    schedule: Schedule, definition: ScheduleDefinition, text: str, now: datetime, by: str | None
) -> Schedule:
    """By an operator, or (None) by the code. Ticks that are due are lost only if the times
    change: a new priority must not cost a tick."""
    before = schedule.definition
    if before is None or (before.timing, before.ends_at) != (definition.timing, definition.ends_at):
        counted_to = max(schedule.counted_to, now)
        schedule = msgspec.structs.replace(schedule, anchor_at=now, counted_to=counted_to)
    return _placed(
        msgspec.structs.replace(
            schedule,
            definition=definition,
            text=text,
            edited_at=None if by is None else now,
            edited_by=by,
        ),
        now,
    )


def paused(
    schedule: Schedule, now: datetime, by: str, reason: str | None, until: datetime | None
) -> Schedule:
    return _placed(
        msgspec.structs.replace(
            _without_ended_pause(schedule, now),
            paused_at=now,
            paused_by=by,
            pause_reason=reason,
            paused_until=until,
        ),
        now,
    )


def resumed(schedule: Schedule, now: datetime) -> Schedule | None:
    """None: it was not paused. The ticks of the pause make no jobs. One that its app no longer
    declares belongs to the operator from now on."""
    if not schedule.is_paused(now):
        return None
    if schedule.undeclared_at is not None:
        schedule = msgspec.structs.replace(
            schedule, declared=None, declared_by=None, undeclared_at=None
        )
    return _without_pause(schedule, now)


def declared(
    schedule: Schedule, definition: ScheduleDefinition, text: str, now: datetime, app: str
) -> Schedule | None:
    """What an app declares when its worker starts. None: it declared the same before, so that an
    operator's edit stays. A pause by an operator stays in any case."""
    if _task(schedule) not in (None, definition.job.task):
        raise BadInput(
            f"schedule {schedule.name} exists with another task, {_task(schedule)}"
            f"{_declared_elsewhere(schedule, app)}: give one of them another name, or drop the old "
            f"one with `freehold schedules drop {schedule.name}`"
        )
    changed = schedule
    if schedule.declared_by != app or schedule.declared != text:
        changed = edited(schedule, definition, text, now, by=None)
    elif schedule.undeclared_at is None:
        return None
    changed = msgspec.structs.replace(changed, declared=text, declared_by=app, undeclared_at=None)
    return _without_pause(changed, now) if changed.paused_by == owner_of(app) else changed


def undeclared(schedule: Schedule, now: datetime, app: str) -> Schedule:
    """The app no longer declares it: paused, and deleted a week later."""
    schedule = msgspec.structs.replace(schedule, undeclared_at=now)
    if schedule.is_paused(now):
        return schedule
    return paused(schedule, now, owner_of(app), f"the app {app} no longer declares it", None)


def owner_of(app: str) -> str:
    """The name under which an app itself pauses what it no longer declares."""
    return f"app:{app}"


def fired(schedule: Schedule, now: datetime) -> Due:
    """What a sweep makes of a schedule that is due."""
    return due(readable(schedule), schedule.anchor_at, schedule.position(now), now)


def _task(schedule: Schedule) -> str | None:
    return None if schedule.definition is None else schedule.definition.job.task


def _declared_elsewhere(schedule: Schedule, app: str) -> str:
    if schedule.declared_by in (None, app):
        return ""
    return f", declared by the app {schedule.declared_by}"


def _without_ended_pause(schedule: Schedule, now: datetime) -> Schedule:
    is_over = schedule.paused_until is not None and schedule.paused_until <= now
    return _unpaused(schedule, schedule.position(now)) if is_over else schedule


def _without_pause(schedule: Schedule, now: datetime) -> Schedule:
    return _placed(_unpaused(schedule, max(schedule.counted_to, now)), now)


def _unpaused(schedule: Schedule, counted_to: datetime) -> Schedule:
    return msgspec.structs.replace(
        schedule,
        counted_to=counted_to,
        paused_at=None,
        paused_by=None,
        pause_reason=None,
        paused_until=None,
    )


def _placed(schedule: Schedule, now: datetime) -> Schedule:
    """With the time at which a sweep must look at it."""
    if schedule.paused_at is not None and schedule.paused_until is None:
        return msgspec.structs.replace(schedule, next_at=None)
    next_at = look_at(readable(schedule), schedule.anchor_at, schedule.position(now), now)
    return msgspec.structs.replace(schedule, next_at=next_at)
