"""Firing: the ticks of schedules become jobs.

A sweep reads the schedules that are due without a lock, decides in pure Python which ticks make a
job, and writes jobs and moved schedules in one statement, guarded by what it read. Of several
sweeps with one tick the first writes; the others change nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from freehold.errors import Refused, RowRefused, StoreUnavailable
from freehold.model import schedule_changes
from freehold.model.audit import AuditKind, Author
from freehold.model.job import IDEMPOTENCY_SECONDS, Enqueued
from freehold.model.operator_actions import OperatorVerb
from freehold.model.schedule import (
    PREFIX,
    Due,
    ScheduleDefinition,
    Tick,
    job_of,
    packed_policy,
    run_at,
)
from freehold.model.schedule_changes import Schedule
from freehold.model.timestamps import micros_of, time_of
from freehold.store import notifications
from freehold.store.rows import json_text
from freehold.store.statements import Conflict, Statement, Verb, read, together
from freehold.store.types import Firing
from freehold.store.verbs import audit
from freehold.store.verbs.operator import operate
from freehold.store.verbs.schedules import schedule_of

_TRIES = 20
#: A schedule that cannot be fired is tried again after this time.
_POSTPONED = timedelta(seconds=60)
_CANCELED_LIMIT = 1000
#: Chances of the schedules of one batch: multiples of the golden ratio are spread evenly.
_GOLDEN = 0.6180339887498949


def fire_schedules(limit: int, chance: float) -> Verb[Firing]:
    """Fire schedules that are due, at most ``limit`` of them. ``chance`` is for their jitter."""
    rows = yield from read("due_schedules", limit=limit)
    due = [
        _fired(schedule_of(row[1:]), time_of(row[0]), (chance + number * _GOLDEN) % 1.0)
        for number, row in enumerate(rows)
    ]
    if not due:
        return Firing()
    try:
        jobs = yield from _fire(due)
    except RowRefused:  # of one schedule: it must not hold up the others
        due, jobs = yield from _fire_one_by_one(due)
    yield from _cancel_earlier(due, jobs)
    won = [each for each in due if each.schedule.name in jobs]
    made = sum(map(len, jobs.values()))
    return Firing(
        seen=len(due),
        fired=made,
        skipped=sum(len(each.due.ticks) for each in won) - made,
        missed=sum(each.due.missed for each in won),
        problems=tuple(each.problem for each in won if each.problem is not None),
    )


class _Fired(msgspec.Struct, frozen=True):
    """A due schedule, what becomes of it, and the jobs of its ticks."""

    schedule: Schedule
    now: datetime
    due: Due
    jobs: list[dict[str, Any]] = []
    problem: str | None = None

    def row(self) -> dict[str, Any]:
        ticks = self.due.ticks
        return {
            "name": self.schedule.name,
            "key": f"{PREFIX}{self.schedule.name}",
            "seen_at": self.schedule.next_at,
            "seen_edit": self.schedule.edit,
            "next_at": self.due.next_at,
            "counted_to": self.due.counted_to,
            "missed": self.due.missed,
            "problem": self.problem,
            "first_tick": ticks[0].at if ticks else None,
            "last_tick": ticks[-1].at if ticks else None,
            "ticks": self.jobs,
        }

    def topics(self) -> Iterable[str]:
        for job in self.jobs:
            yield notifications.queue_topic(job["queue"])
            if job["run_at_micros"] is not None:
                yield notifications.SCHEDULED


def _fired(schedule: Schedule, now: datetime, chance: float) -> _Fired:
    definition = schedule.definition
    if definition is None:
        return _postponed(schedule, now, schedule.problem or "it cannot be read")
    due = schedule_changes.fired(schedule, now)
    jobs = [
        job_row(definition, tick, run_at(definition, tick, schedule.anchor_at, chance), number)
        for number, tick in enumerate(due.ticks)
    ]
    return _Fired(schedule, now, due, jobs)


def _postponed(schedule: Schedule, now: datetime, problem: str) -> _Fired:
    # `fire` ends the pause of every schedule: its ticks are done with from here on.
    moved = Due((), 0, schedule.position(now), now + _POSTPONED)
    return _Fired(schedule, now, moved, problem=problem)


def job_row(
    definition: ScheduleDefinition,
    tick: Tick,
    starts_at: datetime | None,
    number: int,
    *,
    alone: bool = True,
) -> dict[str, Any]:
    """A job of the schedule, as `fire` and `enqueue_keyed` take it."""
    job = job_of(definition, starts_at, alone=alone)
    return {
        "number": number,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "args": job.args.decode(),
        "max_attempts": job.max_attempts,
        "run_at_micros": None if job.run_at is None else micros_of(job.run_at),
        "target": job.target,
        "limit_key": job.limit_key,
        "unique_key": job.unique_key,
        "timeout_seconds": job.timeout_seconds,
        "tags": json_text(job.tags),
        "policy": json_text(packed_policy(job.policy, tick)),
        "meta": job.meta_json,
        "start_by_seconds": job.start_by,
    }


def _fire(due: Sequence[_Fired]) -> Verb[dict[str, list[int]]]:
    """The jobs by schedule, of those that were still as they had been read."""
    topics = {topic for each in due for topic in each.topics()}
    answers = yield from together(
        Statement("fire", {}, [each.row() for each in due]),
        notification=notifications.notify_after(topics) if topics else None,
    )
    jobs: dict[str, list[int]] = {}
    for name, job_id in answers[0]:
        ids = jobs.setdefault(name, [])
        if job_id is not None:
            ids.append(job_id)
    return jobs


def _fire_one_by_one(due: Sequence[_Fired]) -> Verb[tuple[list[_Fired], dict[str, list[int]]]]:
    """One whose jobs the database refuses is postponed, with the error as its problem."""
    done: list[_Fired] = []
    jobs: dict[str, list[int]] = {}
    for each in due:
        try:
            made = yield from _fire([each])
        except RowRefused as error:
            each = _postponed(each.schedule, each.now, str(error))
            made = yield from _fire([each])
        done.append(each)
        jobs.update(made)
    return done, jobs


def _cancel_earlier(due: Sequence[_Fired], jobs: dict[str, list[int]]) -> Verb[None]:
    """The jobs before the new one, of schedules with overlap="cancel". A process that dies before
    this leaves them to the next tick; the new job waits in their lane."""
    for each in due:
        definition, new = each.schedule.definition, jobs.get(each.schedule.name)
        if definition is not None and new and definition.overlap == "cancel":
            yield from cancel_earlier(definition, max(new))


def cancel_earlier(definition: ScheduleDefinition, job_id: int) -> Verb[None]:
    rows = yield from read("lane_jobs", target=definition.key, limit=_CANCELED_LIMIT)
    for (earlier,) in rows:
        if earlier < job_id:
            with contextlib.suppress(Refused):  # it has ended meanwhile
                yield from operate(
                    OperatorVerb.CANCEL, [earlier], definition.key, f"job {job_id} is due"
                )


# -- jobs outside of the ticks ---------------------------------------------------------------


def make_jobs(
    definition: ScheduleDefinition,
    ticks: Sequence[Tick],
    author: Author | None = None,
    *,
    is_backfill: bool = False,
) -> Verb[list[Enqueued]]:
    """The job of each tick, now; or the one that has its key. A backfill makes the job of a tick
    once within a day, whether another job is live or not."""
    rows = [_keyed(definition, tick, number, is_backfill) for number, tick in enumerate(ticks)]
    found: dict[int, Enqueued] = {}
    topics = {notifications.queue_topic(row["queue"]) for row in rows}
    verb = "backfill" if is_backfill else "run"
    after = {"ticks": len(ticks)}
    record = audit.of_setting(author, verb, AuditKind.SCHEDULE, definition.name, after)
    for _ in range(_TRIES):
        left = [row for row in rows if row["position"] not in found]
        if not left:
            return [found[number] for number in range(len(rows))]
        try:
            answers = yield from together(
                *record,
                Statement("enqueue_keyed", {}, left),
                notification=notifications.notify_after(topics),
            )
        except Conflict:
            continue  # another backfill committed a tick of these meanwhile: it is visible now
        record = []
        for position, job_id, at in answers[-1]:
            found[position] = Enqueued(job_id, True, False, at)
        left = [row for row in left if row["position"] not in found]
        if left:
            keys = ("position", "unique_key", "idempotency_key")
            asked = [{key: row[key] for key in keys} for row in left]
            holders = yield from read("find_holders", asked)
            for position, job_id, at in holders:
                found[position] = Enqueued(job_id, False, False, at)
    raise StoreUnavailable("the job before kept changing while it was read: try again")


def _keyed(
    definition: ScheduleDefinition, tick: Tick, position: int, is_backfill: bool
) -> dict[str, Any]:
    """A row of `enqueue_keyed`."""
    row = job_row(definition, tick, None, position, alone=not is_backfill)
    del row["run_at_micros"], row["number"]
    return {
        **row,
        "position": position,
        "pending": False,
        "start_by": None,
        "run_at": None,
        "delay_seconds": None,
        "idempotency_key": f"{definition.key}:{tick.at.isoformat()}" if is_backfill else None,
        "idempotency_seconds": IDEMPOTENCY_SECONDS,
    }
