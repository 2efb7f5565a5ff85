"""The oracle's schedule: which ticks become jobs is decided by the pure rules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from freehold.model import schedule_changes
from freehold.model.job import NewJob
from freehold.model.schedule import ScheduleDefinition, Tick, job_of
from freehold.model.schedule_changes import Schedule, new_schedule
from freehold.store.schedule_text import to_text
from freehold.store.types import Firing
from tests.oracle_table import Table


class OneSchedule:
    """``make_job`` stores the job of a tick and returns its id, or the live job that has its key,
    and whether it is new."""

    def __init__(self, table: Table, make_job: Callable[[NewJob, Tick], tuple[int, bool]]) -> None:
        self._table = table
        self._make_job = make_job
        self.stored: Schedule | None = None

    def put(self, definition: ScheduleDefinition) -> None:
        text, now = to_text(definition), self._table.now
        if self.stored is None:
            self.stored = new_schedule(definition, text, now, by="ops")
        else:
            self._change(schedule_changes.edited(self.stored, definition, text, now, "ops"))

    def pause_or_resume(self, until: datetime | None) -> None:
        assert self.stored is not None
        now = self._table.now
        resumed = schedule_changes.resumed(self.stored, now)
        paused = schedule_changes.paused(self.stored, now, "ops", None, until)
        self._change(paused if resumed is None else resumed)

    def _change(self, schedule: Schedule) -> None:
        self.stored = replace(schedule, edit=schedule.edit + 1, problem=None)

    @property
    def is_due(self) -> bool:
        next_at = None if self.stored is None else self.stored.next_at
        return next_at is not None and next_at <= self._table.now

    def fire(self) -> Firing:
        if not self.is_due:
            return Firing()
        assert self.stored is not None
        schedule, now = self.stored, self._table.now
        assert schedule.definition is not None
        due = schedule_changes.fired(schedule, now)
        made = [(tick, *self._make_job(job_of(schedule.definition), tick)) for tick in due.ticks]
        new = [(tick, job_id) for tick, job_id, created in made if created]
        holders = [job_id for _, job_id, created in made if not created]
        schedule = replace(
            schedule,
            next_at=due.next_at,
            counted_to=due.counted_to,
            missed=schedule.missed + due.missed,
            fired=schedule.fired + len(new),
            skipped=schedule.skipped + len(holders),
            paused_at=None,
            paused_by=None,
            pause_reason=None,
            paused_until=None,
        )
        if new:
            schedule = replace(schedule, last_at=new[-1][0].at, last_job=new[-1][1])
        if holders:
            schedule = replace(schedule, skipped_at=now, skipped_for=holders[0])
        self.stored = schedule
        return Firing(1, len(new), len(holders), due.missed)
