"""Schedules: which ticks make a job, which are missed, and when to look again.

A schedule stores how far its ticks are counted (``counted_to``): every tick up to that time has
made its job, was skipped or was missed. A sweep reads the schedule, gets the ticks since then from
`due`, and writes them if the schedule is still as it was read. So each tick is handled once,
whichever worker sweeps, and a clock that goes back repeats none of them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

import msgspec

from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.model.names import check_name
from freehold.model.policy import Policy, pack
from freehold.model.timestamps import EARLIEST, LATEST, check_timestamp
from freehold.model.timing import (
    LONGEST_INTERVAL_SECONDS,
    Cron,
    Every,
    Timing,
    first_after,
    last_between,
    ticks_between,
)

Overlap = Literal["skip", "allow", "queue", "cancel"]
CatchUp = Literal["last", "none", "all"]

#: In front of the name of a schedule: the unique key, the lane and the tag of its jobs.
PREFIX = "schedule:"
NAME_LENGTH_LIMIT = 90
#: Ticks that become jobs in one write, and missed ticks that are counted.
TICKS_LIMIT = 100
#: A schedule is looked at this often, due or not: the rules of its time zone may change.
LOOK_AHEAD = timedelta(days=1)
#: A tick that is fired this late was not missed.
ON_TIME_SECONDS = 60.0
#: How old a tick may be that is still fired, if `within` is not given.
WITHIN_SECONDS: dict[CatchUp, float | None] = {"last": None, "none": 60.0, "all": 86400.0}
JITTER_LIMIT_SECONDS = 86400.0
_INSTANT = timedelta(microseconds=1)


class Tick(msgspec.Struct, frozen=True, omit_defaults=True):
    """The instant for which a schedule makes a job; and how many ticks before it were missed,
    counted up to 100."""

    at: datetime
    missed: int = 0


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule does, as code declares it or an operator writes it. Checked at creation."""

    name: str
    timing: Timing
    job: NewJob
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    #: None: the bound of the catch-up policy.
    within_seconds: float | None = None
    jitter_seconds: float = 0.0
    ends_at: datetime | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not isinstance(self.timing, Cron | Every):
            raise BadInput(
                f"schedule {self.name}: {self.timing!r} is no time: give Cron(...) or Every(...)"
            )
        _check_choice(self.name, "overlap", self.overlap, get_args(Overlap))
        _check_choice(self.name, "catch_up", self.catch_up, get_args(CatchUp))
        _check_times(self)
        _check_job(self)

    @property
    def key(self) -> str:
        return f"{PREFIX}{self.name}"

    @property
    def oldest_seconds(self) -> float | None:
        """How old a tick may be that is still fired. None: any age."""
        if self.within_seconds is not None:
            return self.within_seconds
        return WITHIN_SECONDS[self.catch_up]


def define_schedule(
    name: str,
    timing: Timing,
    job: NewJob,
    *,
    overlap: Overlap = "skip",
    catch_up: CatchUp = "last",
    within: float | timedelta | None = None,
    jitter: float | timedelta = 0.0,
    ends_at: datetime | None = None,
) -> ScheduleDefinition:
    """A checked definition; writes nothing."""
    return ScheduleDefinition(
        name=name,
        timing=timing,
        job=job,
        overlap=overlap,
        catch_up=catch_up,
        within_seconds=None if within is None else seconds_of("within", within),
        jitter_seconds=seconds_of("jitter", jitter),
        ends_at=ends_at,
    )


def seconds_of(what: str, span: object) -> float:
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, int | float) and not isinstance(span, bool):
        return float(span)
    raise BadInput(f"{what}={span!r}: give seconds or a timedelta")


def _check_name(name: object) -> None:
    check_name("schedule", name)
    assert isinstance(name, str)
    if len(name) > NAME_LENGTH_LIMIT:
        raise BadInput(
            f"schedule {name[:40]}... has {len(name)} characters: give a name of at most "
            f"{NAME_LENGTH_LIMIT}"
        )


def _check_choice(name: str, what: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadInput(f"schedule {name}: {what}={value!r}: choose one of {', '.join(choices)}")


def _check_times(definition: ScheduleDefinition) -> None:
    name, within, jitter = definition.name, definition.within_seconds, definition.jitter_seconds
    if within is not None:
        if definition.catch_up == "none":
            raise BadInput(
                f'schedule {name}: within= is for catch_up="last" and "all"; with "none" a tick '
                f"that is more than {ON_TIME_SECONDS:g} seconds late is missed"
            )
        if not 1 <= within <= LONGEST_INTERVAL_SECONDS:
            raise BadInput(f"schedule {name}: within={within!r}: give 1 second to ten years")
    if not 0 <= jitter <= JITTER_LIMIT_SECONDS:
        raise BadInput(f"schedule {name}: jitter={jitter!r}: give 0 seconds to a day")
    if definition.ends_at is not None:
        check_timestamp("ends_at", definition.ends_at)


def _check_job(definition: ScheduleDefinition) -> None:
    name, job = definition.name, definition.job
    if not isinstance(job, NewJob):
        raise BadInput(
            f"schedule {name}: {type(job).__name__} is no prepared job: give task.prepare(...)"
        )
    if any(key is not None for key in (job.unique_key, job.idempotency_key, job.waiting)):
        raise BadInput(
            f"schedule {name}: its jobs cannot have a unique or idempotency key of their own: "
            "overlap= decides what happens while the job before is live"
        )
    if job.run_at is not None or job.delay_seconds or job.pending:
        raise BadInput(
            f"schedule {name}: the schedule decides when its jobs run: leave out run_at and delay"
        )
    if isinstance(job.start_by, datetime):
        raise BadInput(
            f"schedule {name}: start_by as a time would be over after one tick: give seconds after "
            "the job falls due"
        )
    if job.target is not None and definition.overlap in ("queue", "cancel"):
        raise BadInput(
            f"schedule {name}: overlap={definition.overlap!r} puts its jobs into the lane "
            f"{definition.key}: leave out target, or choose skip or allow"
        )


class Due(msgspec.Struct, frozen=True):
    """What a sweep writes: the ticks that make a job, how many were missed, and the new position.
    ``next_at`` None: the schedule has ended."""

    ticks: tuple[Tick, ...]
    missed: int
    counted_to: datetime
    next_at: datetime | None


def due(
    definition: ScheduleDefinition, anchor_at: datetime, counted_to: datetime, now: datetime
) -> Due:
    """The ticks after ``counted_to`` that are due now."""
    takes_all = definition.catch_up == "all"
    timing, end = definition.timing, min(now, definition.ends_at or now)
    horizon, missed = _horizon(definition, now), 0
    if takes_all and counted_to < (too_old := min(horizon, end) - _INSTANT):
        old, _ = ticks_between(timing, counted_to, too_old, anchor_at, TICKS_LIMIT)
        missed, counted_to = len(old), too_old
    limit = TICKS_LIMIT if takes_all else TICKS_LIMIT + 1
    found, following = ticks_between(timing, counted_to, end, anchor_at, limit)
    ticks: tuple[Tick, ...] = ()
    if found and takes_all:
        counted_to = found[-1]
        ticks = tuple(Tick(at, 0 if number else missed) for number, at in enumerate(found))
    elif found:
        missed, counted_to = len(found) - 1, found[-1]
        if following is not None and following <= end:  # more than were counted
            counted_to = last_between(timing, following, end, anchor_at)
            following = first_after(timing, counted_to, anchor_at)
        if counted_to < horizon:
            missed += 1
        else:
            ticks = (Tick(counted_to, missed),)
    return Due(ticks, missed, counted_to, _look_at(definition, following, max(now, counted_to)))


def _horizon(definition: ScheduleDefinition, now: datetime) -> datetime:
    """Older ticks are missed."""
    seconds = definition.oldest_seconds
    return EARLIEST if seconds is None else now - timedelta(seconds=seconds)


def _look_at(
    definition: ScheduleDefinition, following: datetime | None, now: datetime
) -> datetime | None:
    """When a sweep must look at the schedule: at its next tick, or earlier. None: it has ended."""
    if following is None or following > (definition.ends_at or LATEST):
        return None
    return min(following, now + LOOK_AHEAD)


def look_at(
    definition: ScheduleDefinition, anchor_at: datetime, counted_to: datetime, now: datetime
) -> datetime | None:
    """The same for a schedule with these ticks counted."""
    following = first_after(definition.timing, counted_to, anchor_at)
    return _look_at(definition, following, max(now, counted_to))


def next_ticks(
    definition: ScheduleDefinition, anchor_at: datetime, counted_to: datetime, limit: int
) -> list[datetime]:
    """The next ticks, if nothing changes."""
    end = definition.ends_at or LATEST
    return ticks_between(definition.timing, counted_to, end, anchor_at, limit)[0]


def run_at(
    definition: ScheduleDefinition, tick: Tick, anchor_at: datetime, chance: float
) -> datetime | None:
    """When the job of the tick may start: by jitter some time after it, but before the next tick.
    None: at once."""
    if not definition.jitter_seconds:
        return None
    spread = timedelta(seconds=definition.jitter_seconds)
    following = first_after(definition.timing, tick.at, anchor_at)
    if following is not None:
        spread = min(spread, following - tick.at)
    return tick.at + spread * chance


def job_of(
    definition: ScheduleDefinition, starts_at: datetime | None = None, *, alone: bool = True
) -> NewJob:
    """The job of a tick. ``alone`` False: it does not matter whether another one is live."""
    job, overlap = definition.job, definition.overlap
    changes: dict[str, Any] = {"run_at": starts_at, "tags": (*job.tags, definition.key)}
    if alone and overlap == "skip":
        changes["unique_key"] = definition.key
    elif overlap in ("queue", "cancel") or (overlap == "skip" and job.target is None):
        changes["target"] = definition.key
        changes["policy"] = _in_a_lane(job.policy)
    return msgspec.structs.replace(job, **changes)


def _in_a_lane(policy: Policy) -> Policy:
    """A failed, canceled or interrupted run must not hold up those of later ticks."""
    return replace(
        policy,
        on_cancel="cancel" if policy.on_cancel == "auto" else policy.on_cancel,
        on_drain="requeue" if policy.on_drain == "auto" else policy.on_drain,
        lane_on_failure="skip",
    )


def packed_policy(policy: Policy, tick: Tick) -> dict[str, Any]:
    """The tick travels with the policy, which every worker gets with the job."""
    return {**(pack(policy) or {}), "tick": msgspec.to_builtins(tick)}


def tick_of(policy_json: str | None) -> Tick | None:
    """The tick of a job that a schedule made."""
    if not policy_json or '"tick"' not in policy_json:
        return None
    try:
        stored = msgspec.json.decode(policy_json)["tick"]
        return Tick(datetime.fromisoformat(stored["at"]), int(stored.get("missed", 0)))
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError):
        return None  # written by a newer version, or by hand
