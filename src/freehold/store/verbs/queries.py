"""Queries: jobs, events, pages, depths, queues, lanes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from freehold.errors import BadInput
from freehold.model.explain import PauseInfo
from freehold.model.history import Event, before_first_gap
from freehold.model.job import Job
from freehold.model.state import FINAL, LEASED, Stage, State, state_of
from freehold.store.rows import event_of, job_of, maybe_time, time_of
from freehold.store.stage_sql import stage_of
from freehold.store.statements import Row, Rows, Statement, StatementGroup, Verb, read
from freehold.store.types import (
    DEPTH_BOUND,
    PAGE_LIMIT,
    JobCounts,
    JobFilter,
    JobPage,
    LaneInfo,
    QueueInfo,
)
from freehold.store.verbs.limits import limit_of

#: Rows that one page reads at most, however rare what it filters for.
PAGE_WINDOW = 5000

_ALL = frozenset(State)
_BLOCKS_LANE = frozenset({Stage.PAUSED, Stage.FAILED, Stage.PARKED})
_ATTENTION = frozenset({State.PENDING, State.PAUSED, State.FAILED})


def read_jobs(ids: Sequence[int]) -> Verb[dict[int, Job]]:
    """Jobs by id, live or finished."""
    if not ids:
        return {}
    rows = yield from read("read_jobs", [{"id": job_id} for job_id in dict.fromkeys(ids)])
    return {row[0]: job_of(row) for row in rows}


def events(job_id: int, newest: int | None = None) -> Verb[list[Event]]:
    """The stored events of a job, oldest first; only so many of the newest, if given."""
    rows = yield from read("read_events", id=job_id, newest=newest)
    return [event_of(row) for row in reversed(rows)]


def events_after(event_id: int, limit: int) -> Verb[list[Event]]:
    """Events of all jobs with larger ids, in order. A reader that continues from its last event
    gets each one, also one whose transaction commits after later ones."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: give 1 to {PAGE_LIMIT} events")
    # The time first: what is old by then was old when the events were read.
    asked = Statement("events_after", {"after": event_id, "limit": limit})
    now, rows = yield StatementGroup((Statement("now", {}), asked), writes=False)
    return before_first_gap(event_id, [event_of(row) for row in rows], time_of(now[0][0]))


def newest_event() -> Verb[int]:
    """The largest id of an event, 0 if there is none: where a reader starts to follow."""
    rows = yield from read("newest_event")
    return int(rows[0][0])


def page(filter: JobFilter) -> Verb[JobPage]:
    """Jobs, newest first. Each kind of state is read from the index that holds it; the pages are
    then merged."""
    if not 1 <= filter.limit <= PAGE_LIMIT:
        raise BadInput(f"limit={filter.limit}: a page has 1 to {PAGE_LIMIT} jobs")
    states = filter.states or _ALL
    found_jobs: dict[int, Job] = {}
    floor: int | None = None
    for name in _sources(states):
        rows = yield from _read_source(name, filter, states)
        found, low = _found(rows, filter.limit + 1)
        # A job that ended between two reads is found twice: the later look is right.
        found_jobs.update((job.id, job) for job in found)
        # Beyond the lowest id that one source has read, the other sources cannot be merged.
        if low is not None:
            floor = low if floor is None else max(floor, low)
    jobs = [job for job in found_jobs.values() if floor is None or job.id >= floor]
    jobs.sort(key=lambda job: -job.id)
    if len(jobs) > filter.limit:
        jobs = jobs[: filter.limit]
        floor = jobs[-1].id
    return JobPage(tuple(jobs), floor)


def _sources(states: frozenset[State]) -> list[str]:
    names = []
    if State.QUEUED in states:
        names.append("page_live")  # reads every live job, whatever its state
    else:
        if states & LEASED:
            names.append("page_leased")
        if states & _ATTENTION:
            names.append("page_attention")
    if State.SUCCEEDED in states:
        names.append("page_history")  # reads every finished job
    elif states & FINAL:
        names.append("page_unsuccessful")
    return names


def _read_source(name: str, filter: JobFilter, states: frozenset[State]) -> Verb[Rows]:
    rows = yield from read(
        name,
        states=sorted(str(state) for state in states),
        queue=filter.queue,
        task=filter.task,
        target=filter.target,
        tag=filter.tag,
        before=filter.before if filter.before is not None else 2**63 - 1,
        limit=filter.limit + 1,  # one more shows whether there is a next page
        window=PAGE_WINDOW,
    )
    return rows


def _found(rows: Rows, limit: int) -> tuple[list[Job], int | None]:
    """The jobs, and the id down to which this source has been read (None: to its end).

    Every row begins with the lowest id that was looked at and how many were; the job's own
    columns follow, or NULLs if none fitted.
    """
    low, looked_at = rows[0][0], rows[0][1]
    jobs = [job_of(row[2:]) for row in rows if row[2] is not None]
    if len(jobs) == limit:
        return jobs, min(job.id for job in jobs)
    return jobs, (low if looked_at >= PAGE_WINDOW else None)


def depth(queues: Sequence[str], bound: int = DEPTH_BOUND) -> Verb[int]:
    """How many jobs can be claimed right now, counted up to a bound."""
    total = 0
    for queue in queues:
        rows = yield from read("depth", queue=queue, bound=bound - total)
        total += rows[0][0]
        if total >= bound:
            break
    return total


def counts() -> Verb[JobCounts]:
    """Live jobs by stage."""
    rows = yield from read("counts", bound=DEPTH_BOUND)
    return JobCounts(*rows[0])


def has_live_jobs() -> Verb[bool]:
    """Whether there is any live job, whatever it waits for. Counts by stage cannot decide this: a
    stage that is not counted would be missed."""
    rows = yield from read("has_live_jobs")
    return bool(rows[0][0])


def queues() -> Verb[list[QueueInfo]]:
    """Queues that have jobs or settings."""
    rows = yield from read("queues", bound=DEPTH_BOUND)
    return [
        QueueInfo(
            row[0],
            row[1],
            row[2],
            row[3],
            maybe_time(row[4]),
            maybe_time(row[5]),
            row[6],
            row[7],
            maybe_time(row[8]),
            row[9],
            limit_of(*row[10:]),
        )
        for row in rows
    ]


def ready_queues(after: str, limit: int) -> Verb[list[str]]:
    """Open queues with ready jobs, by name, beyond ``after``."""
    rows = yield from read("ready_queues", after=after, limit=limit)
    return [row[0] for row in rows]


def pause_of_all() -> Verb[PauseInfo | None]:
    """The pause of all queues together, which is also the pause of a tenant."""
    rows = yield from read("pause_of_all")
    if not rows:
        return None
    at, by, reason, until = rows[0]
    return PauseInfo(time_of(at), by, reason, maybe_time(until))


def queue(name: str) -> Verb[QueueInfo | None]:
    """One queue, if it has jobs or settings."""
    return next((each for each in (yield from queues()) if each.name == name), None)


def lanes(after: str, limit: int) -> Verb[list[LaneInfo]]:
    """Lanes that have jobs or a pause, by target. By target, beyond ``after``."""
    rows = yield from read("lanes", after=after, limit=limit, bound=DEPTH_BOUND)
    return [_lane(row) for row in rows]


def _lane(row: Row) -> LaneInfo:
    stage = None if row[3] is None else stage_of(row[3])
    return LaneInfo(
        target=row[0],
        depth=row[1],
        head=row[2],
        head_state=None if stage is None else state_of(stage, row[4] is not None),
        head_reason=row[5],
        head_since=maybe_time(row[6]),
        blocked=stage in _BLOCKS_LANE,
        pause=None
        if row[7] is None
        else PauseInfo(time_of(row[7]), row[8], row[9], maybe_time(row[10])),
    )


def lane(target: str) -> Verb[LaneInfo | None]:
    """One lane, if it has jobs or a pause."""
    rows = yield from read("lane", target=target, bound=DEPTH_BOUND)
    return _lane(rows[0]) if rows else None


def lane_holder(target: str) -> Verb[Job | None]:
    """Whoever holds the lane: leased, backing off, paused, failed, parked or next."""
    rows = yield from read("lane_holder", target=target)
    return job_of(rows[0]) if rows else None


def ahead(job: Job, bound: int) -> Verb[int]:
    """How many ready jobs of its queue would be claimed before this one."""
    rows = yield from read(
        "jobs_ahead", queue=job.queue, priority=job.priority, id=job.id, bound=bound
    )
    return int(rows[0][0])


def now() -> Verb[datetime]:
    """The store's clock, which decides."""
    rows = yield from read("now")
    return time_of(rows[0][0])
