"""What an operator can read and do with schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from freehold.errors import BadInput
from freehold.model import schedule_changes
from freehold.model.audit import PYTHON, Author
from freehold.model.job import Enqueued, Job, NewJob
from freehold.model.names import check_key, check_name, check_reason
from freehold.model.schedule import (
    CatchUp,
    Overlap,
    ScheduleDefinition,
    Tick,
    define_schedule,
    next_ticks,
    seconds_of,
)
from freehold.model.schedule_changes import Schedule, readable
from freehold.model.schedule_info import ScheduleInfo as ScheduleInfo
from freehold.model.schedule_info import ScheduleState as ScheduleState
from freehold.model.timestamps import check_timestamp
from freehold.model.timing import Cron, Every, Timing, ticks_between
from freehold.store.schedule_text import to_text
from freehold.store.statements import Verb, method
from freehold.store.types import PAGE_LIMIT
from freehold.store.verbs import fire, queries
from freehold.store.verbs import schedules as verbs

BACKFILL_LIMIT = 1000
NEXT_RUNS_LIMIT = 1000


# -- reading ---------------------------------------------------------------------------------


def schedules(after: str = "", limit: int = PAGE_LIMIT) -> Verb[list[ScheduleInfo]]:
    """A page of schedules, by name; ``after`` is the last name of the page before."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} schedules")
    found = yield from verbs.schedules(after and check_name("schedule", after), limit)
    infos = yield from _infos(found)
    return infos


def schedule(name: str) -> Verb[ScheduleInfo]:
    found = yield from _existing(name)
    (info,) = yield from _infos([found])
    return info


def next_runs(name: str, count: int = 5) -> Verb[list[datetime]]:
    """The next ticks, if nothing changes; none of a schedule that is paused without an end."""
    if not 1 <= count <= NEXT_RUNS_LIMIT:
        raise BadInput(f"count={count}: give 1 to {NEXT_RUNS_LIMIT} runs")
    found = yield from _existing(name)
    now = yield from queries.now()
    if found.is_paused(now) and found.paused_until is None:
        return []
    return next_ticks(readable(found), found.anchor_at, found.position(now), count)


def _existing(name: str) -> Verb[Schedule]:
    found = yield from verbs.read_schedule(check_name("schedule", name))
    if found is None:
        raise verbs.not_found(name)
    return found


def _infos(found: Sequence[Schedule]) -> Verb[list[ScheduleInfo]]:
    now = yield from queries.now()
    ids = {each.last_job for each in found} | {each.skipped_for for each in found}
    jobs = yield from queries.read_jobs(sorted(each for each in ids if each is not None))
    return [_info(each, jobs, now) for each in found]


def _info(schedule: Schedule, jobs: dict[int, Job], now: datetime) -> ScheduleInfo:
    definition = schedule.definition
    last, waited_for = jobs.get(schedule.last_job or 0), jobs.get(schedule.skipped_for or 0)
    is_paused = schedule.is_paused(now)
    values: dict[str, Any] = {
        field: getattr(schedule, field)
        for field in ScheduleInfo.__struct_fields__
        if field in Schedule.__struct_fields__
    }
    return ScheduleInfo(
        **{
            **values,
            **_described(definition),
            "state": _state(schedule, waited_for, is_paused),
            "next_at": _next_tick(schedule, now),
            "last_job_state": None if last is None else last.state,
            "skipped_for_state": None if waited_for is None else waited_for.state,
            "is_edited": schedule.is_edited,
        }
    )


def _described(definition: ScheduleDefinition | None) -> dict[str, Any]:
    if definition is None:
        definition_of: dict[str, Any] = {
            "time": "?", "zone": None, "task": "?", "queue": "?", "overlap": "skip",
            "catch_up": "last", "within_seconds": None, "jitter_seconds": 0.0, "ends_at": None,
        }  # fmt: skip
        return definition_of
    timing = definition.timing
    return {
        "time": timing.expression if isinstance(timing, Cron) else str(timing),
        "zone": timing.zone if isinstance(timing, Cron) else None,
        "task": definition.job.task,
        "queue": definition.job.queue,
        "overlap": definition.overlap,
        "catch_up": definition.catch_up,
        "within_seconds": definition.within_seconds,
        "jitter_seconds": definition.jitter_seconds,
        "ends_at": definition.ends_at,
    }


def _state(schedule: Schedule, waited_for: Job | None, is_paused: bool) -> ScheduleState:
    if schedule.problem is not None:
        return ScheduleState.BROKEN
    if is_paused:
        return ScheduleState.PAUSED
    if schedule.next_at is None:
        return ScheduleState.ENDED
    is_live = waited_for is not None and waited_for.report is None
    return ScheduleState.SKIPPING if is_live else ScheduleState.ACTIVE


def _next_tick(schedule: Schedule, now: datetime) -> datetime | None:
    if schedule.next_at is None or schedule.definition is None:
        return None
    found = next_ticks(schedule.definition, schedule.anchor_at, schedule.position(now), 1)
    return found[0] if found else None


def _author(by: str, via: str, reason: str | None) -> Author:
    return Author(check_key("by", by), via, reason)


# -- changing --------------------------------------------------------------------------------


def put_schedule(
    name: str,
    timing: Timing,
    job: NewJob,
    *,
    by: str,
    overlap: Overlap = "skip",
    catch_up: CatchUp = "last",
    within: float | timedelta | None = None,
    jitter: float | timedelta = 0.0,
    ends_at: datetime | None = None,
    reason: str | None = None,
    via: str = PYTHON,
) -> Verb[ScheduleInfo]:
    """Store a schedule, or change the one of this name. It fires at its next tick, never at
    once."""
    author = _author(by, via, check_reason(reason))
    definition = define_schedule(
        name,
        timing,
        job,
        overlap=overlap,
        catch_up=catch_up,
        within=within,
        jitter=jitter,
        ends_at=ends_at,
    )
    stored = yield from verbs.put_schedule(definition, by, author)
    (info,) = yield from _infos([stored])
    return info


def edit_schedule(
    name: str,
    *,
    by: str,
    timing: Timing | None = None,
    overlap: Overlap | None = None,
    catch_up: CatchUp | None = None,
    within: float | timedelta | None = None,
    jitter: float | timedelta | None = None,
    ends_at: datetime | None = None,
    reason: str | None = None,
    via: str = PYTHON,
) -> Verb[ScheduleInfo]:
    """Change some of a schedule. The edit stays until the app that declares it declares something
    else. Nothing is fired backwards."""
    author = _author(by, via, check_reason(reason))
    given = {
        "timing": timing,
        "overlap": overlap,
        "catch_up": catch_up,
        "within_seconds": None if within is None else seconds_of("within", within),
        "jitter_seconds": None if jitter is None else seconds_of("jitter", jitter),
        "ends_at": ends_at,
    }
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes:
        raise BadInput("nothing to change: give a time, an overlap or another option")

    def edit(schedule: Schedule, now: datetime) -> Schedule:
        definition = msgspec.structs.replace(readable(schedule), **changes)
        if definition.catch_up == "none" and "within_seconds" not in changes:
            definition = msgspec.structs.replace(definition, within_seconds=None)
        return schedule_changes.edited(schedule, definition, to_text(definition), now, by)

    changed = yield from verbs.change_schedule(check_name("schedule", name), edit, author)
    assert changed is not None
    (info,) = yield from _infos([changed])
    return info


def pause_schedule(
    name: str,
    *,
    by: str,
    reason: str | None = None,
    until: datetime | None = None,
    via: str = PYTHON,
) -> Verb[None]:
    """Fire no tick until it is resumed, or until a time. The ticks of the pause make no jobs
    afterwards."""
    checked = check_reason(reason)
    author = _author(by, via, checked)
    if until is not None:
        check_timestamp("until", until)
        now = yield from queries.now()
        if until <= now:
            raise BadInput(f"until={until.isoformat()}: give a time after {now.isoformat()}")
    yield from verbs.change_schedule(
        check_name("schedule", name),
        lambda schedule, now: schedule_changes.paused(schedule, now, by, checked, until),
        author,
        "pause",
    )


def resume_schedule(
    name: str, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[bool]:
    """Returns whether it was paused."""
    author = _author(by, via, check_reason(reason))
    changed = yield from verbs.change_schedule(
        check_name("schedule", name), schedule_changes.resumed, author, "resume"
    )
    return changed is not None


def reset_schedule(
    name: str, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[ScheduleInfo]:
    """Back to what its app declared last."""
    author = _author(by, via, check_reason(reason))
    changed = yield from verbs.reset_schedule(check_name("schedule", name), author)
    (info,) = yield from _infos([changed])
    return info


def drop_schedule(
    name: str, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[None]:
    """Remove a schedule; its jobs stay. One that code declares returns when a worker starts."""
    author = _author(by, via, check_reason(reason))
    dropped = yield from verbs.drop_schedule(check_name("schedule", name), author)
    if not dropped:
        raise verbs.not_found(name)


# -- jobs outside of the ticks ---------------------------------------------------------------


def run_schedule(
    name: str, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[Enqueued]:
    """Make a job of the schedule now, also while it is paused; its tick is this moment. If
    overlap="skip" and the job before lives, that one is returned."""
    author = _author(by, via, check_reason(reason))
    definition = readable((yield from _existing(name)))
    now = yield from queries.now()
    (made,) = yield from fire.make_jobs(definition, [Tick(now)], author)
    if made.created and definition.overlap == "cancel":
        yield from fire.cancel_earlier(definition, made.id)
    return made


def backfill_schedule(
    name: str,
    since: datetime,
    until: datetime,
    *,
    by: str,
    reason: str | None = None,
    via: str = PYTHON,
) -> Verb[list[Enqueued]]:
    """Make a job for each tick from ``since`` to ``until``, both included. They run one after
    another, unless overlap="allow". Repeated within a day, it makes no tick's job again."""
    author = _author(by, via, check_reason(reason))
    check_timestamp("since", since)
    check_timestamp("until", until)
    found = yield from _existing(name)
    definition, now = readable(found), (yield from queries.now())
    if not since <= until <= now:
        raise BadInput(
            f"since={since.isoformat()} until={until.isoformat()}: give two times in the past, in "
            "order"
        )
    ticks, _ = ticks_between(
        definition.timing,
        since - timedelta(microseconds=1),
        until,
        _anchor_before(found, definition, since),
        BACKFILL_LIMIT + 1,
    )
    if len(ticks) > BACKFILL_LIMIT:
        raise BadInput(
            f"schedule {name} has more than {BACKFILL_LIMIT} ticks in this time: give a shorter one"
        )
    jobs = [Tick(at) for at in ticks]
    made = yield from fire.make_jobs(definition, jobs, author, is_backfill=True)
    return made


def _anchor_before(schedule: Schedule, definition: ScheduleDefinition, since: datetime) -> datetime:
    """An interval continues backwards in the same rhythm."""
    anchor = schedule.anchor_at
    if isinstance(definition.timing, Every) and since < anchor:
        interval = timedelta(seconds=definition.timing.seconds)
        anchor -= interval * ((anchor - since) // interval + 2)
    return anchor


class ScheduleActions:
    """What both operators offer of schedules."""

    schedules = method(schedules)
    schedule = method(schedule)
    next_runs = method(next_runs)
    put_schedule = method(put_schedule)
    edit_schedule = method(edit_schedule)
    pause_schedule = method(pause_schedule)
    resume_schedule = method(resume_schedule)
    reset_schedule = method(reset_schedule)
    drop_schedule = method(drop_schedule)
    run_schedule = method(run_schedule)
    backfill_schedule = method(backfill_schedule)
