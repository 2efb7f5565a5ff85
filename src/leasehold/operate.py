"""What an operator can ask and do: one door for the command line, the API and the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from leasehold.errors import BadInput, IllegalTransition, JobNotFound
from leasehold.model.explain import Cause, Facts, explain
from leasehold.model.history import Event, Moment, timeline
from leasehold.model.job import Job
from leasehold.model.moments import check_moment
from leasehold.model.names import check_key, check_name
from leasehold.model.note import Note
from leasehold.model.operation import Answer, Verb
from leasehold.store import noting, operating, reading, upkeep
from leasehold.store.contract import Counts, Filter, Page, Queue
from leasehold.store.faces import AwaitedStore, BlockingStore
from leasehold.store.steps import Steps

AHEAD_BOUND = 10_000
LARGEST_ID = 2**63 - 1
REASON_LIMIT = 500
#: A page that filters for something rare looks on this often before it answers short.
_LOOKS = 20


class Story(msgspec.Struct, frozen=True):
    """A job with everything that happened to it, and what its handlers said."""

    job: Job
    timeline: list[Moment]
    log: list[Note]


def show(job_id: int) -> Steps[Story]:
    job = yield from _existing(job_id)
    events = yield from reading.events(job_id)
    notes = yield from noting.notes(job_id)
    return Story(job, timeline(job, events), notes)


def why_not_running(job_id: int) -> Steps[list[Cause]]:
    job = yield from _existing(job_id)
    facts = yield from _facts(job)
    return explain(job, facts)


def _facts(job: Job) -> Steps[Facts]:
    now = yield from reading.now()
    queue = yield from reading.queue(job.queue)
    holder = yield from reading.lane_holder(job.target) if job.target else _nobody()
    ahead = yield from reading.ahead(job, AHEAD_BOUND)
    return Facts(
        now=now,
        queue_paused=queue is not None and queue.paused,
        queue_pause_reason=queue.pause_reason if queue else None,
        queue_paused_until=queue.paused_until if queue else None,
        holder=None if holder is None or holder.id == job.id else holder,
        ahead=ahead,
        ahead_bound=AHEAD_BOUND,
    )


def _nobody() -> Steps[Job | None]:
    yield from ()
    return None


def _existing(job_id: int) -> Steps[Job]:
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


def jobs(filter: Filter) -> Steps[Page]:
    """A page that is full if there is enough to fill it within a bounded number of looks."""
    _check_filter(filter)
    found: list[Job] = []
    page = Page((), None)
    for _ in range(_LOOKS):
        page = yield from reading.page(
            msgspec.structs.replace(filter, limit=filter.limit - len(found))
        )
        found += page.jobs
        if page.next is None or len(found) >= filter.limit:
            break
        filter = msgspec.structs.replace(filter, before=page.next)
    return Page(tuple(found), page.next)


def _check_filter(filter: Filter) -> None:
    for what in ("queue", "task", "tag"):
        if getattr(filter, what) is not None:
            check_name(what, getattr(filter, what))
    if filter.target is not None:
        check_key("target", filter.target)
    if filter.before is not None and not 0 < filter.before <= LARGEST_ID:
        raise BadInput(f"before={filter.before}: give the `next` of the page before")


def act(verb: Verb, ids: Sequence[int], by: str, reason: str | None = None) -> Steps[list[Answer]]:
    check_key("by", by)
    answers = yield from operating.operate(verb, _possible(ids), by, _checked_reason(reason))
    return answers


def resume_in_lane(target: str, job_id: int, by: str, reason: str | None = None) -> Steps[Answer]:
    """Let a paused or failed job of this lane go on; no other job, and nothing else."""
    job = yield from _existing(job_id)
    if job.target != target:
        where = f"in lane {job.target}" if job.target else "in no lane"
        raise JobNotFound(f"target {target!r} has no job {job_id}: that job is {where}")
    (answer,) = yield from act(Verb.RESUME, [job_id], by, reason)
    if answer.what == "already":
        raise IllegalTransition(
            f"job {job_id} is {answer.state}: only a paused or failed job can be resumed"
        )
    return answer


def pause_queue(
    name: str, by: str, reason: str | None = None, until: datetime | None = None
) -> Steps[None]:
    check_name("queue", name)
    check_key("by", by)
    if until is not None:
        check_moment("until", until)
    yield from upkeep.pause_queue(name, by, _checked_reason(reason), until)


def resume_queue(name: str) -> Steps[bool]:
    was_paused = yield from upkeep.resume_queue(check_name("queue", name))
    return was_paused


def _checked_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise BadInput(f"reason={reason!r}: give a text")
    if len(reason) > REASON_LIMIT or "\0" in reason:
        raise BadInput(f"a reason has at most {REASON_LIMIT} characters and no NUL")
    if any("\ud800" <= letter <= "\udfff" for letter in reason):
        raise BadInput("the reason is not Unicode text: write it in UTF-8")
    return reason


class Operate:
    """The door for callers that block."""

    def __init__(self, store: BlockingStore) -> None:
        self._store = store

    def show(self, job_id: int) -> Story:
        return self._store.run(show(job_id))

    def explain(self, job_id: int) -> list[Cause]:
        return self._store.run(why_not_running(job_id))

    def jobs(self, filter: Filter) -> Page:
        return self._store.run(jobs(filter))

    def act(
        self, verb: Verb, ids: Sequence[int], by: str, reason: str | None = None
    ) -> list[Answer]:
        return self._store.run(act(verb, ids, by, reason))

    def queues(self) -> list[Queue]:
        return self._store.queues()

    def now(self) -> datetime:
        """The store's clock, by which leases end."""
        return self._store.now()

    def counts(self) -> Counts:
        return self._store.counts()

    def pause_queue(
        self, name: str, by: str, reason: str | None = None, until: datetime | None = None
    ) -> None:
        self._store.run(pause_queue(name, by, reason, until))

    def resume_queue(self, name: str) -> bool:
        return self._store.run(resume_queue(name))


class AwaitedOperate:
    """The same for asyncio."""

    def __init__(self, store: AwaitedStore) -> None:
        self._store = store

    async def show(self, job_id: int) -> Story:
        return await self._store.run(show(job_id))

    async def explain(self, job_id: int) -> list[Cause]:
        return await self._store.run(why_not_running(job_id))

    async def jobs(self, filter: Filter) -> Page:
        return await self._store.run(jobs(filter))

    async def act(
        self, verb: Verb, ids: Sequence[int], by: str, reason: str | None = None
    ) -> list[Answer]:
        return await self._store.run(act(verb, ids, by, reason))

    async def resume_in_lane(
        self, target: str, job_id: int, by: str, reason: str | None = None
    ) -> Answer:
        return await self._store.run(resume_in_lane(target, job_id, by, reason))

    async def events_after(self, event_id: int, limit: int) -> list[Event]:
        return await self._store.events_after(event_id, limit)

    async def newest_event(self) -> int:
        return await self._store.newest_event()

    async def queues(self) -> list[Queue]:
        return await self._store.queues()

    async def now(self) -> datetime:
        return await self._store.now()

    async def counts(self) -> Counts:
        return await self._store.counts()

    async def pause_queue(
        self, name: str, by: str, reason: str | None = None, until: datetime | None = None
    ) -> None:
        await self._store.run(pause_queue(name, by, reason, until))

    async def resume_queue(self, name: str) -> bool:
        return await self._store.run(resume_queue(name))
