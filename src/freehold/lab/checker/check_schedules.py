"""N1, N2: every tick makes one job, or is counted as skipped or missed; none is fired backwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation
from freehold.model.job import Job
from freehold.model.schedule import PREFIX, tick_of
from freehold.model.schedule_changes import Schedule
from freehold.model.timestamps import micros_of
from freehold.model.timing import Every

_PUT = "put_schedule"


def one_job_for_each_tick(history: IndexedHistory) -> Iterator[Violation]:
    for name, jobs in _fired(history).items():
        seen: dict[datetime, int] = {}
        for at, job in jobs:
            if at in seen:
                text = f"the tick {at} of schedule {name} has job {seen[at]}, too"
                yield Violation("N1", job.id, text, micros_of(job.created_at))
            seen[at] = job.id


def nothing_is_fired_backwards(history: IndexedHistory) -> Iterator[Violation]:
    """A job that was made after a put was confirmed has a tick after that put was requested."""
    puts: dict[str, list[tuple[int, int]]] = {}
    for each in history.invocations:
        response = each.response
        if each.request.info.get("verb") == _PUT and response and "error" not in response.info:
            name = each.request.info["schedule"]
            puts.setdefault(name, []).append((each.request.at, response.at))
    for name, jobs in _fired(history).items():
        for at, job in jobs:
            created = micros_of(job.created_at)
            before = [began for began, ended in puts.get(name, ()) if ended < created]
            if before and micros_of(at) <= max(before):
                text = f"has the tick {at} of schedule {name}, which was put after that"
                yield Violation("N1", job.id, text, created)


def no_tick_is_lost(history: IndexedHistory) -> Iterator[Violation]:
    """Of a schedule that was put once, and has ended: its ticks made jobs, or were counted."""
    if history.faults.healed_at is None:
        return
    put_again, fired = _put_again(history), _fired(history)
    for schedule in history.evidence.schedules:
        if schedule.name in put_again:
            continue
        made = len(fired.get(schedule.name, ()))
        if schedule.fired != made:
            text = f"schedule {schedule.name} counts {schedule.fired} jobs, and made {made}"
            yield Violation("N1", 0, text)
        definition = schedule.definition
        if schedule.skipped and definition is not None and definition.overlap != "skip":
            text = f"schedule {schedule.name} skipped {schedule.skipped} ticks, and never may"
            yield Violation("N2", 0, text)
        expected = _ticks(schedule)
        counted = schedule.fired + schedule.skipped + schedule.missed
        if schedule.next_at is None and expected != counted:
            text = f"schedule {schedule.name} had {expected} ticks, and counts {counted}"
            yield Violation("N2", 0, text)


def _put_again(history: IndexedHistory) -> set[str]:
    puts = Counter(
        each.request.info["schedule"]
        for each in history.invocations
        if each.request.info.get("verb") == _PUT
    )
    return {name for name, count in puts.items() if count > 1}


def _ticks(schedule: Schedule) -> int:
    """By arithmetic of its own: how many intervals there are until the end."""
    definition = schedule.definition
    assert definition is not None
    assert isinstance(definition.timing, Every)
    assert definition.ends_at is not None
    return (definition.ends_at - schedule.anchor_at) // timedelta(seconds=definition.timing.seconds)


def _fired(history: IndexedHistory) -> dict[str, list[tuple[datetime, Job]]]:
    found: dict[str, list[tuple[datetime, Job]]] = {}
    for job in history.evidence.jobs.values():
        tick = tick_of(job.policy_json)
        for tag in job.tags:
            if tick is not None and tag.startswith(PREFIX):
                found.setdefault(tag.removeprefix(PREFIX), []).append((tick.at, job))
    return found
