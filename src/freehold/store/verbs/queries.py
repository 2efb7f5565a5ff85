"""Queries: jobs, events, pages, depths, queues, lanes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from freehold.errors import BadInput
from freehold.model.attempt_span import AttemptSpan, AttemptSpans
from freehold.model.explain import PauseInfo
from freehold.model.failures import Failure
from freehold.model.history import Event, before_first_gap
from freehold.model.job import Job, JobEnd
from freehold.model.live_jobs import BlockedLane
from freehold.model.meta import encode_meta
from freehold.model.state import FINAL, HOLDS_LANE, LEASED, Stage, State, state_of
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.rows import error_of, event_of, job_of
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
#: With more, PostgreSQL would rather read and sort whole days than walk their indexes.
PAGE_WINDOW = 3000

_LAST_ID = 2**63 - 1
_BLOCKED_LANES = 100
#: Finished jobs, and events, that are examined for attempts.
_SPANS_WINDOW = 5000
#: Failed jobs that block their lanes: the error of each is read from its events.
_LIVE_FAILURES = 500
#: Ids follow the time of creation, except within concurrent transactions.
_OUT_OF_ORDER = timedelta(minutes=1)
#: The lowest id that was read, and when its job was created.
_Floor: TypeAlias = tuple[int, datetime]

_ALL = frozenset(State)
_BLOCKS_LANE = frozenset({Stage.PAUSED, Stage.FAILED, Stage.PARKED})
_ATTENTION = frozenset({State.PENDING, State.PAUSED, State.FAILED})


def read_jobs(ids: Sequence[int]) -> Verb[dict[int, Job]]:
    """Jobs by id, live or finished."""
    if not ids:
        return {}
    rows = yield from read("read_jobs", [{"id": job_id} for job_id in dict.fromkeys(ids)])
    return {row[0]: job_of(row) for row in rows}


def read_ends(ids: Sequence[int]) -> Verb[dict[int, JobEnd | None]]:
    """How these jobs have ended; None: there is no such job. Live jobs are left out, except one
    that has failed and blocks its lane."""
    if not ids:
        return {}
    rows = yield from read("read_ends", [{"id": job_id} for job_id in ids])
    ends: dict[int, JobEnd | None] = dict.fromkeys(ids)
    for job_id, task, stage, state, reason, result, error in rows:
        if state is not None:
            ends[job_id] = JobEnd(task, State(state), result, error_of(error), reason)
        elif stage_of(stage) is Stage.FAILED:
            last = yield from events(job_id, 1)  # a live row has no error
            cause = last[0].error if last else None
            ends[job_id] = JobEnd(task, State.FAILED, None, cause, reason)
        else:
            del ends[job_id]
    return ends


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
    ((read_at,),) = now
    return before_first_gap(event_id, [event_of(row) for row in rows], time_of(read_at))


def newest_event() -> Verb[int]:
    """The largest id of an event, 0 if there is none: where a reader starts to follow."""
    ((newest,),) = yield from read("newest_event")
    return int(newest)


def page(filter: JobFilter) -> Verb[JobPage]:
    """Jobs, newest first. Each kind of state is read from the index that holds it; the pages are
    then merged."""
    if not 1 <= filter.limit <= PAGE_LIMIT:
        raise BadInput(f"limit={filter.limit}: a page has 1 to {PAGE_LIMIT} jobs")
    before = filter.before
    if before is None:
        before = yield from _end_of_ids(filter)
    found_jobs: dict[int, Job] = {}
    floor: _Floor | None = None
    for name in _sources(filter):
        rows = yield from read(name, **_params(filter, before))
        found, low = _found(rows, filter.limit + 1)
        # A job that ended between two reads is found twice: the later look is right.
        found_jobs.update((job.id, job) for job in found)
        # Beyond the lowest id that one source has read, the other sources cannot be merged.
        if low is not None:
            floor = low if floor is None else max(floor, low)
    if floor is not None and _is_too_old(floor, filter):
        floor = None
    jobs = [job for job in found_jobs.values() if floor is None or job.id >= floor[0]]
    jobs.sort(key=lambda job: -job.id)
    if len(jobs) > filter.limit:
        jobs = jobs[: filter.limit]
        floor = jobs[-1].id, jobs[-1].created_at
    return JobPage(tuple(jobs), *(floor or (None, None)))


def _is_too_old(floor: _Floor, filter: JobFilter) -> bool:
    return filter.created_since is not None and floor[1] < filter.created_since - _OUT_OF_ORDER


def _end_of_ids(filter: JobFilter) -> Verb[int]:
    """The first id whose job was created after the filter's end, found by bisection: a page of last
    week must not read all jobs of this week."""
    ends = [end for end in (filter.created_until, filter.finished_until) if end is not None]
    if not ends:
        return _LAST_ID
    end = min(ends) + _OUT_OF_ORDER
    newest = yield from read("job_at_or_below", id=_LAST_ID)
    if not newest or time_of(newest[0][1]) < end:
        return _LAST_ID
    low, high = 0, int(newest[0][0])
    while low < high - 1:
        middle = (low + high) // 2
        rows = yield from read("job_at_or_below", id=middle)
        if rows and time_of(rows[0][1]) >= end:
            high = rows[0][0]
        else:
            low = middle
    return high


def _sources(filter: JobFilter) -> list[str]:
    """The indexes that hold what the filter can match."""
    states = filter.states or _ALL
    live, ended = states - {State.SUCCEEDED, State.CANCELED}, states & FINAL
    if filter.worker is not None:
        live &= LEASED
    if filter.error is not None:
        live &= {State.FAILED}
        ended -= {State.SUCCEEDED}
    if filter.finished_since is not None or filter.finished_until is not None:
        live = frozenset()
    names = []
    if State.QUEUED in live:
        names.append("page_live")  # reads every live job, whatever its state
    else:
        if live & LEASED:
            names.append("page_leased")
        if live & _ATTENTION:
            names.append("page_attention")
    if State.SUCCEEDED in ended:
        names.append("page_history")  # reads every finished job
    elif ended:
        names.append("page_unsuccessful")
    return names


def _params(filter: JobFilter, before: int) -> dict[str, Any]:
    return {
        "states": sorted(str(state) for state in filter.states or _ALL),
        "queue": filter.queue,
        "task": filter.task,
        "target": filter.target,
        "tag": filter.tag,
        "meta": encode_meta(filter.meta),
        "error": filter.error,
        "worker": filter.worker,
        "created_since": filter.created_since,
        "created_until": filter.created_until,
        "finished_since": filter.finished_since,
        "finished_until": filter.finished_until,
        # History is partitioned by day: days before this one are not read.
        "first_day": _day(filter.finished_since),
        "before": before,
        "limit": filter.limit + 1,  # one more shows whether there is a next page
        "window": PAGE_WINDOW,
    }


def _day(at: datetime | None) -> datetime | None:
    if at is None:
        return None
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _found(rows: Rows, limit: int) -> tuple[list[Job], _Floor | None]:
    """The jobs, and the id down to which this source has been read (None: to its end).

    Every row begins with the lowest id that was looked at, the creation time of that job, and how
    many were looked at; the job's own columns follow, or NULLs if none fitted.
    """
    low, created_at, looked_at = rows[0][:3]
    jobs = [job_of(row[3:]) for row in rows if row[3] is not None]
    if len(jobs) == limit:
        last = min(jobs, key=lambda job: job.id)
        return jobs, (last.id, last.created_at)
    return jobs, ((low, time_of(created_at)) if looked_at >= PAGE_WINDOW else None)


def depth(queues: Sequence[str], bound: int = DEPTH_BOUND) -> Verb[int]:
    """How many jobs can be claimed right now, counted up to a bound."""
    total = 0
    for queue in queues:
        ((found,),) = yield from read("depth", queue=queue, bound=bound - total)
        total += found
        if total >= bound:
            break
    return total


def counts(bound: int = DEPTH_BOUND) -> Verb[JobCounts]:
    """Live jobs by stage, each counted up to a bound."""
    (columns,) = yield from read("counts", bound=bound)
    return JobCounts(*columns)


def has_live_jobs() -> Verb[bool]:
    """Whether there is any live job, whatever it waits for. Counts by stage cannot decide this: a
    stage that is not counted would be missed."""
    ((found,),) = yield from read("has_live_jobs")
    return bool(found)


def queues(bound: int = DEPTH_BOUND) -> Verb[list[QueueInfo]]:
    """Queues that have jobs or settings. The jobs of each are counted up to a bound."""
    rows = yield from read("queues", bound=bound)
    return [_queue(row, bound) for row in rows]


def queue(name: str, bound: int = DEPTH_BOUND) -> Verb[QueueInfo | None]:
    """One queue, if it has jobs or settings."""
    ((*columns,),) = yield from read("queue", queue=name, bound=bound)
    found = _queue(tuple(columns), bound)
    has_jobs = found.ready or found.leased or found.not_ready
    return found if has_jobs or found.paused or found.weight != 1 or found.limit else None


def _queue(row: Row, bound: int) -> QueueInfo:
    name, ready, leased, not_ready, oldest, paused_at, by, reason, until, weight, *limit = row
    return QueueInfo(
        name,
        ready,
        leased,
        not_ready,
        oldest_ready_at=maybe_time(oldest),
        paused_at=maybe_time(paused_at),
        paused_by=by,
        pause_reason=reason,
        paused_until=maybe_time(until),
        weight=weight,
        limit=limit_of(*limit),
        bound=bound,
    )


def pause_of_all() -> Verb[PauseInfo | None]:
    """The pause of all queues together, which is also the pause of a tenant."""
    rows = yield from read("pause_of_all")
    if not rows:
        return None
    at, by, reason, until = rows[0]
    return PauseInfo(time_of(at), by, reason, maybe_time(until))


def lanes(after: str, limit: int, bound: int = DEPTH_BOUND) -> Verb[list[LaneInfo]]:
    """Lanes that have jobs or a pause, by target, beyond ``after``. The jobs of each are counted up
    to a bound."""
    rows = yield from read("lanes", after=after, limit=limit, bound=bound)
    return [_lane(row, bound) for row in rows]


def _lane(row: Row, bound: int) -> LaneInfo:
    target, depth, head, byte, started_at, head_reason, since, paused_at, by, reason, until = row
    stage = None if byte is None else stage_of(byte)
    pause = None
    if paused_at is not None:
        pause = PauseInfo(time_of(paused_at), by, reason, maybe_time(until))
    return LaneInfo(
        target=target,
        depth=min(depth, bound),  # the holder is counted beside those that wait
        head=head,
        head_state=None if stage is None else state_of(stage, started_at is not None),
        head_reason=head_reason,
        head_since=maybe_time(since),
        blocked=stage in _BLOCKS_LANE,
        pause=pause,
        bound=bound,
    )


def lane(target: str, bound: int = DEPTH_BOUND) -> Verb[LaneInfo | None]:
    """One lane, if it has jobs or a pause."""
    rows = yield from read("lane", target=target, bound=bound)
    return _lane(rows[0], bound) if rows else None


def blocked_lanes() -> Verb[list[BlockedLane]]:
    """Lanes whose holder waits for a person, among the newest jobs that do."""
    rows = yield from read("blocked_lanes", window=PAGE_WINDOW, limit=_BLOCKED_LANES)
    return [
        BlockedLane(target, job_id, state_of(stage_of(byte), False), reason)
        for target, job_id, byte, reason in rows
    ]


def overdue_leases(seconds: float) -> Verb[int]:
    """How many leases expired more than so many seconds ago, up to a bound."""
    ((found,),) = yield from read("overdue_leases", seconds=seconds, bound=DEPTH_BOUND)
    return int(found)


def recent_failures(limit: int) -> Verb[tuple[list[Failure], int]]:
    """The failed ones among the newest unsuccessful jobs, and how many were examined."""
    rows = yield from read("recent_failures", limit=limit, live=_LIVE_FAILURES)
    failures = [
        Failure(job_id, task, error, message, time_of(at))
        for _, job_id, task, error, message, at in rows
        if job_id is not None
    ]
    return failures, int(rows[0][0])


def attempts(since: datetime, until: datetime, limit: int) -> Verb[AttemptSpans]:
    """The newest attempts that ran in this time, as far as the newest rows have them."""
    rows = yield from read(
        "recent_attempts", since=since, until=until, limit=limit + 1, window=_SPANS_WINDOW
    )
    found = [_span(row[1:]) for row in rows if row[1] is not None]
    return AttemptSpans(tuple(found[:limit]), len(found) <= limit, maybe_time(rows[0][0]))


def _span(row: Row) -> AttemptSpan:
    job_id, task, queue, worker, number, token, leased_at, started_at, ended_at, outcome = row
    times = time_of(leased_at), maybe_time(started_at), maybe_time(ended_at)
    return AttemptSpan(job_id, task, queue, worker, number, token, *times, outcome)


def lane_jobs(target: str, around: int, limit: int) -> Verb[list[Job]]:
    """The holder of a lane, then the jobs that wait before and after this id."""
    rows = yield from read("lane_around", target=target, around=around, limit=limit)
    jobs = yield from read_jobs([job_id for (job_id,) in rows])
    in_lane = [job for job in jobs.values() if job.target == target]
    return sorted(in_lane, key=lambda job: (job.stage not in HOLDS_LANE, job.id))


def lane_holder(target: str) -> Verb[Job | None]:
    """The holder of the lane: leased, backing off, paused, failed, parked or next."""
    rows = yield from read("lane_holder", target=target)
    return job_of(rows[0]) if rows else None


def ahead(job: Job, bound: int) -> Verb[int]:
    """How many ready jobs of its queue would be claimed before this one."""
    ((count,),) = yield from read(
        "jobs_ahead", queue=job.queue, priority=job.priority, id=job.id, bound=bound
    )
    return int(count)


def wait_for_standbys() -> Verb[None]:
    """Before the answer that there is nothing to do: the change that was read must outlive a
    fail-over, as the caller's own would."""
    yield from read("wait_for_standbys")


def now() -> Verb[datetime]:
    """The store's clock, which decides."""
    ((at,),) = yield from read("now")
    return time_of(at)
