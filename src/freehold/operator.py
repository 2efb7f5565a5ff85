"""What an operator can ask and do: one door for the command line, the API and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from freehold.errors import BadInput, IllegalTransition, JobNotFound
from freehold.model.explain import Cause, Facts, LimitUse, explain
from freehold.model.history import TimelineEntry, timeline
from freehold.model.job import Job
from freehold.model.job_log import LogLine, check_reason
from freehold.model.limit import ALL_QUEUES, Limit
from freehold.model.names import check_key, check_name
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.timestamps import check_timestamp
from freehold.store.statements import Verb, nothing
from freehold.store.store import AsyncStore, Store, awaited, blocking
from freehold.store.types import PAGE_LIMIT, JobFilter, JobPage, LaneInfo
from freehold.store.verbs import job_log as noting
from freehold.store.verbs import limits as limiting
from freehold.store.verbs import operator as operating
from freehold.store.verbs import pause as pausing
from freehold.store.verbs import queries as reading
from freehold.store.verbs import workers as registering

AHEAD_BOUND = 10_000
LARGEST_ID = 2**63 - 1
#: A page that filters for something rare looks on this often before it answers short.
_LOOKS = 20


class JobDetail(msgspec.Struct, frozen=True):
    """A job with everything that happened to it, and what its handlers said."""

    job: Job
    timeline: list[TimelineEntry]
    log: list[LogLine]


def show(job_id: int) -> Verb[JobDetail]:
    job = yield from _existing(job_id)
    events = yield from reading.events(job_id)
    notes = yield from noting.read_log(job_id)
    return JobDetail(job, timeline(job, events), notes)


def why_not_running(job_id: int) -> Verb[list[Cause]]:
    job = yield from _existing(job_id)
    facts = yield from _facts(job)
    return explain(job, facts)


def _facts(job: Job) -> Verb[Facts]:
    now = yield from reading.now()
    doors = yield from limiting.queue_rules(job.queue)
    holder = yield from reading.lane_holder(job.target) if job.target else nothing()
    lane = yield from reading.lane(job.target) if job.target else nothing()
    key = yield from limiting.key_use(job.limit_key) if job.limit_key else nothing()
    ahead = yield from reading.ahead(job, AHEAD_BOUND)
    workers = yield from registering.workers()
    return Facts(
        now=now,
        doors=tuple(doors),
        holder=None if holder is None or holder.id == job.id else holder,
        lane_pause=lane.pause if lane is not None else None,
        key=key or LimitUse(),
        ahead=ahead,
        ahead_bound=AHEAD_BOUND,
        workers=tuple(workers),
    )


def _existing(job_id: int) -> Verb[Job]:
    jobs = yield from reading.read_jobs(_possible([job_id]))
    if job_id not in jobs:
        raise operating.not_found(job_id)
    return jobs[job_id]


def _possible(ids: Sequence[int]) -> Sequence[int]:
    """Numbers that no column holds are the ids of no job, and no store has to hear of them."""
    for job_id in ids:
        if type(job_id) is not int:  # callers are not all checked by types
            raise BadInput(f"{job_id!r} is no job's id: give a whole number")
        if not 0 < job_id <= LARGEST_ID:
            raise operating.not_found(job_id)
    return ids


def jobs(filter: JobFilter) -> Verb[JobPage]:
    """A page that is full if there is enough to fill it within a bounded number of looks."""
    _check_filter(filter)
    found: list[Job] = []
    page = JobPage((), None)
    for _ in range(_LOOKS):
        page = yield from reading.page(
            msgspec.structs.replace(filter, limit=filter.limit - len(found))
        )
        found += page.jobs
        if page.next is None or len(found) >= filter.limit:
            break
        filter = msgspec.structs.replace(filter, before=page.next)
    return JobPage(tuple(found), page.next)


def _check_filter(filter: JobFilter) -> None:
    for what in ("queue", "task", "tag"):
        if getattr(filter, what) is not None:
            check_name(what, getattr(filter, what))
    if filter.target is not None:
        check_key("target", filter.target)
    if filter.before is not None and not 0 < filter.before <= LARGEST_ID:
        raise BadInput(f"before={filter.before}: give the `next` of the page before")


def act(
    verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None = None
) -> Verb[list[ActionResult]]:
    check_key("by", by)
    answers = yield from operating.operate(verb, _possible(ids), by, check_reason(reason))
    return answers


def resume_in_lane(
    target: str, job_id: int, by: str, reason: str | None = None
) -> Verb[ActionResult]:
    """Let a paused or failed job of this lane go on; no other job, and nothing else."""
    job = yield from _existing(job_id)
    if job.target != target:
        where = f"in lane {job.target}" if job.target else "in no lane"
        raise JobNotFound(f"target {target!r} has no job {job_id}: that job is {where}")
    (answer,) = yield from act(OperatorVerb.RESUME, [job_id], by, reason)
    if answer.what == "already":
        raise IllegalTransition(
            f"job {job_id} is {answer.state}: only a paused or failed job can be resumed"
        )
    return answer


def pause_queue(
    name: str, by: str, reason: str | None = None, until: datetime | None = None
) -> Verb[None]:
    """Of a queue, or of all together (``*``)."""
    _queue_or_all(name)
    check_key("by", by)
    if until is not None:
        check_timestamp("until", until)
    yield from pausing.pause_queue(name, by, check_reason(reason), until)


def resume_queue(name: str) -> Verb[bool]:
    was_paused = yield from pausing.resume_queue(_queue_or_all(name))
    return was_paused


def set_queue_limit(name: str, limit: Limit) -> Verb[None]:
    yield from limiting.set_queue_limit(_queue_or_all(name), limit)


def set_weight(name: str, weight: float) -> Verb[None]:
    if not 0.001 <= weight <= 1_000_000:
        raise BadInput(f"weight={weight!r}: give a number from 0.001 to 1000000")
    yield from limiting.set_weight(check_name("queue", name), weight)


def set_key_limit(key: str, limit: Limit) -> Verb[None]:
    yield from limiting.set_key_limit(check_key("limit key", key), limit)


def _queue_or_all(name: str) -> str:
    return name if name == ALL_QUEUES else check_name("queue", name)


def lanes(after: str = "", limit: int = 100) -> Verb[list[LaneInfo]]:
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} lanes")
    found = yield from reading.lanes(after and check_key("target", after), limit)
    return found


def pause_lane(
    target: str, by: str, reason: str | None = None, until: datetime | None = None
) -> Verb[None]:
    check_key("target", target)
    check_key("by", by)
    if until is not None:
        check_timestamp("until", until)
    yield from pausing.pause_lane(target, by, check_reason(reason), until)


def resume_lane(target: str) -> Verb[bool]:
    was_paused = yield from pausing.resume_lane(check_key("target", target))
    return was_paused


class Operator:
    """The door for callers that block."""

    def __init__(self, store: Store) -> None:
        self.session = store.session

    show = blocking(show)
    explain = blocking(why_not_running)
    jobs = blocking(jobs)
    act = blocking(act)
    resume_in_lane = blocking(resume_in_lane)
    events_after = blocking(reading.events_after)
    newest_event = blocking(reading.newest_event)
    queues = blocking(reading.queues)
    now = blocking(reading.now)
    counts = blocking(reading.counts)
    workers = blocking(registering.workers)
    pause_queue = blocking(pause_queue)
    resume_queue = blocking(resume_queue)
    set_queue_limit = blocking(set_queue_limit)
    set_weight = blocking(set_weight)
    set_key_limit = blocking(set_key_limit)
    queue_limits = blocking(limiting.queue_limits)
    key_limits = blocking(limiting.key_limits)
    shared_use = blocking(limiting.shared_use)
    lanes = blocking(lanes)
    pause_lane = blocking(pause_lane)
    resume_lane = blocking(resume_lane)


class AsyncOperator:
    """The same for asyncio."""

    def __init__(self, store: AsyncStore) -> None:
        self.session = store.session

    show = awaited(show)
    explain = awaited(why_not_running)
    jobs = awaited(jobs)
    act = awaited(act)
    resume_in_lane = awaited(resume_in_lane)
    events_after = awaited(reading.events_after)
    newest_event = awaited(reading.newest_event)
    queues = awaited(reading.queues)
    now = awaited(reading.now)
    counts = awaited(reading.counts)
    workers = awaited(registering.workers)
    pause_queue = awaited(pause_queue)
    resume_queue = awaited(resume_queue)
    set_queue_limit = awaited(set_queue_limit)
    set_weight = awaited(set_weight)
    set_key_limit = awaited(set_key_limit)
    queue_limits = awaited(limiting.queue_limits)
    key_limits = awaited(limiting.key_limits)
    shared_use = awaited(limiting.shared_use)
    lanes = awaited(lanes)
    pause_lane = awaited(pause_lane)
    resume_lane = awaited(resume_lane)
