"""Lists of jobs, queues, lanes and signals. Each reads a bounded number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from freehold.errors import BadInput
from freehold.model.explain import queue_wait
from freehold.model.job import Job
from freehold.model.names import check_key, check_name
from freehold.model.signal import SignalInfo
from freehold.operations.input_checks import check_filter, checked_ids
from freehold.store.statements import Verb, method
from freehold.store.types import (
    DEPTH_BOUND,
    FEW_QUEUES,
    LANE_LIST_BOUND,
    MANY_QUEUES_BOUND,
    PAGE_LIMIT,
    QUEUE_LIST_BOUND,
    JobCounts,
    JobFilter,
    JobPage,
    LaneInfo,
    QueueInfo,
)
from freehold.store.verbs import limits, queries
from freehold.store.verbs import signals as signal_verbs

#: A page with a rare filter reads at most this many pages of the store before it is returned short.
READS_LIMIT = 20


def jobs(filter: JobFilter, reads: int | None = None) -> Verb[JobPage]:
    """A page of jobs. It may be short if the filter is rare: it takes at most so many reads, each
    of at most 3,000 rows of each index. A list that is read again and again needs one."""
    check_filter(filter)
    if reads is None:
        reads = READS_LIMIT
    elif not 1 <= reads <= READS_LIMIT:
        raise BadInput(f"reads={reads}: give 1 to {READS_LIMIT}")
    found: list[Job] = []
    page = JobPage((), None)
    for _ in range(reads):
        page = yield from queries.page(
            msgspec.structs.replace(filter, limit=filter.limit - len(found))
        )
        found += page.jobs
        if page.next is None or len(found) >= filter.limit:
            break
        filter = msgspec.structs.replace(filter, before=page.next)
    return JobPage(tuple(found), page.next, page.looked_until)


def jobs_by_id(ids: Sequence[int]) -> Verb[dict[int, Job]]:
    """Those of these jobs that exist, in the order of the ids."""
    if len(ids) > PAGE_LIMIT:
        raise BadInput(f"{len(ids)} jobs: give at most {PAGE_LIMIT}")
    found = yield from queries.read_jobs(list(dict.fromkeys(checked_ids(ids))))
    return {job_id: found[job_id] for job_id in dict.fromkeys(ids) if job_id in found}


def counts(bound: int = DEPTH_BOUND) -> Verb[JobCounts]:
    """Live jobs by stage, each counted up to a bound."""
    return (yield from queries.counts(_checked(bound)))


def queues(bound: int = QUEUE_LIST_BOUND) -> Verb[list[QueueInfo]]:
    """Queues that have jobs or settings. The jobs of each are counted up to a bound."""
    return (yield from queries.queues(_checked(bound)))


def queue_list() -> Verb[list[QueueInfo]]:
    """The same for lists that are read again and again: the jobs of few queues are counted up to
    1,000, those of many up to 100."""
    found = yield from queries.queues(MANY_QUEUES_BOUND)
    is_deep = any(max(each.ready, each.leased, each.not_ready) >= each.bound for each in found)
    if is_deep and len(found) <= FEW_QUEUES:
        found = yield from queries.queues(QUEUE_LIST_BOUND)
    return found


def queue(name: str, bound: int = DEPTH_BOUND) -> Verb[QueueInfo | None]:
    """One queue, if it has jobs or settings."""
    return (yield from queries.queue(check_name("queue", name), _checked(bound)))


def lanes(after: str = "", limit: int = 100, bound: int = LANE_LIST_BOUND) -> Verb[list[LaneInfo]]:
    """A page of lanes, by target; ``after`` is the last target of the page before. The jobs of each
    are counted up to a bound."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} lanes")
    return (yield from queries.lanes(after and check_key("target", after), limit, _checked(bound)))


def lane(target: str, bound: int = DEPTH_BOUND) -> Verb[LaneInfo | None]:
    """One lane, if it has jobs or a pause."""
    return (yield from queries.lane(check_key("target", target), _checked(bound)))


def _checked(bound: int) -> int:
    if not 1 <= bound <= DEPTH_BOUND:
        raise BadInput(f"bound={bound}: jobs are counted up to a number from 1 to {DEPTH_BOUND}")
    return bound


def lane_holders(targets: Sequence[str]) -> Verb[dict[str, int]]:
    """The job that holds each of these lanes, if there is one."""
    if len(targets) > PAGE_LIMIT:
        raise BadInput(f"{len(targets)} targets: give at most {PAGE_LIMIT}")
    found = {}
    for target in dict.fromkeys(targets):
        holder = yield from queries.lane_holder(target)
        if holder is not None:
            found[target] = holder.id
    return found


def queue_waits(queues: Sequence[str]) -> Verb[dict[str, str]]:
    """What the ready jobs of each of these queues wait for, besides a worker: a pause, or room."""
    if len(queues) > PAGE_LIMIT:
        raise BadInput(f"{len(queues)} queues: give at most {PAGE_LIMIT}")
    found = {}
    for queue in dict.fromkeys(queues):
        rules = yield from limits.queue_rules(queue)
        if text := queue_wait(rules):
            found[queue] = text
    return found


def signals(after: str = "", limit: int = 100) -> Verb[list[SignalInfo]]:
    """A page of the signals that are kept, by name; ``after`` is the last one of the page before.
    Their values are not shown."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} signals")
    return (yield from signal_verbs.signals(after and check_key("after", after), limit))


class ListActions:
    jobs = method(jobs)
    jobs_by_id = method(jobs_by_id)
    counts = method(counts)
    queues = method(queues)
    queue_list = method(queue_list)
    queue = method(queue)
    lanes = method(lanes)
    lane = method(lane)
    lane_holders = method(lane_holders)
    queue_waits = method(queue_waits)
    signals = method(signals)
