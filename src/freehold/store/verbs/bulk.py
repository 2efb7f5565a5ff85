"""Bulk operations: a verb on the set of jobs that matched a filter when it was asked.

`start` walks the pages of the filter, without a lock, and then stores the operation with the ids of
its jobs, in chunks, in one transaction. So jobs that match later are not touched, and a caller that
dies before leaves nothing behind.

`carry_out_step` changes the jobs of the next chunk in one transaction with the row of the step,
whose key is (operation, chunk). A worker may die at any point: either the whole step is written, or
nothing of it. Of two workers that carry out the same chunk the second is refused, with all its
changes. A job that has left the filter's states since is not touched. A step that finds a planned
job changed, and still in these states, is planned again. A job that the database refuses to write
is left out of its step, and counted with the refused ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from freehold.errors import IllegalTransition, Refused, RowRefused, StoreUnavailable
from freehold.model.audit import Author
from freehold.model.bulk import (
    EVENTS,
    JOBS_LIMIT,
    KEY_TAKEN,
    NO_JOB,
    Amend,
    Amendment,
    BulkOperation,
    BulkPreview,
    BulkState,
    BulkStep,
    BulkVerb,
    Delete,
    JobPreview,
    PreviewStatus,
    cause_of,
    plan_bulk,
)
from freehold.model.job import Job
from freehold.model.operator_actions import NoChange, OperatorVerb, RequestStop, Transition
from freehold.model.state import State
from freehold.model.timestamps import maybe_time, time_of
from freehold.store import notifications
from freehold.store.rows import amendment_of, counts_of, ids_of, json_text, preview_of
from freehold.store.statements import (
    BULK_STEP_INDEX,
    UNIQUE_INDEX,
    Conflict,
    Row,
    Statement,
    Verb,
    read,
    trial,
    write,
)
from freehold.store.types import PAGE_LIMIT, JobFilter
from freehold.store.verbs.amend import amend_statement
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.operator import change_statements, delete_rows
from freehold.store.verbs.queries import page, read_jobs

#: Jobs of one chunk, which are changed in one transaction.
CHUNK = 500
_TRIES = 50
#: So often is a step planned again because its jobs change; then those that do are left alone.
_RECHECKS = 5
_LAST_ID = 2**63 - 1


@dataclass(slots=True)
class _Tally:
    """The judgements of a set: what is planned, and the counts of the rest."""

    amendment: Amendment | None = None
    planned: list[tuple[Job, BulkStep]] = field(default_factory=list)
    already: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    #: Unique keys that jobs of this set will hold.
    keys: set[str] = field(default_factory=set)

    def add(self, verb: BulkVerb, job: Job, taken: frozenset[int]) -> None:
        step = self.judge(verb, job, taken)
        if isinstance(step, str):
            self.refused[step] += 1
        elif isinstance(step, NoChange):
            self.already += 1
        else:
            self.planned.append((job, step))

    def judge(
        self, verb: BulkVerb | OperatorVerb, job: Job, taken: frozenset[int]
    ) -> BulkStep | str:
        """The step of a job, or why it is refused."""
        try:
            step = plan_bulk(verb, job, self.amendment)
        except IllegalTransition as refused:
            return cause_of(job, refused)
        if job.id in taken and not isinstance(step, NoChange):
            return KEY_TAKEN
        if _takes_key(job, step):
            assert job.unique_key is not None
            if job.unique_key in self.keys:
                return KEY_TAKEN
            self.keys.add(job.unique_key)
        return step

    def leave_out(self, refused: dict[int, str]) -> None:
        """Jobs that the database refuses to write, with its errors."""
        self.planned = [each for each in self.planned if each[0].id not in refused]
        self.refused.update(refused.values())


def _takes_key(job: Job, step: BulkStep) -> bool:
    """A failed or finished job holds no unique key; queued again, it does."""
    return (
        job.unique_key is not None
        and isinstance(step, Transition)
        and step.state is State.QUEUED
        and (job.stage is None or job.state is State.FAILED)
    )


def _with_taken_keys(verb: BulkVerb | OperatorVerb, jobs: Sequence[Job]) -> Verb[frozenset[int]]:
    """Those whose unique key another live job holds by now."""
    if verb not in (BulkVerb.RETRY, BulkVerb.RESUME):
        return frozenset()
    asking = [job for job in jobs if job.unique_key is not None]
    rows = [
        {"position": position, "unique_key": job.unique_key, "idempotency_key": None}
        for position, job in enumerate(asking)
    ]
    found = (yield from read("find_holders", rows)) if rows else []
    return frozenset(
        asking[position].id for position, holder, _ in found if holder != asking[position].id
    )


def survey(
    verb: BulkVerb, filter: JobFilter, amendment: Amendment | None = None
) -> Verb[tuple[list[int], BulkPreview]]:
    """The ids of all jobs of the filter, oldest first, and what the verb would do with them."""
    ids: list[int] = []
    tally, done, requested = _Tally(amendment), Counter[str](), 0
    filter = msgspec.structs.replace(filter, before=None, limit=PAGE_LIMIT)
    while True:
        found = yield from page(filter)
        taken = yield from _with_taken_keys(verb, found.jobs)
        for job in found.jobs:
            tally.add(verb, job, taken)
        ids += [job.id for job in found.jobs]
        done.update(job.state.value for job, s in tally.planned if not isinstance(s, RequestStop))
        requested += sum(isinstance(step, RequestStop) for _, step in tally.planned)
        tally.planned.clear()
        if len(ids) > JOBS_LIMIT:
            raise Refused(
                f"more than {JOBS_LIMIT:,} jobs match: narrow the filter, for example by "
                "created_until, and repeat the operation for the rest"
            )
        if found.next is None:
            counts = (dict(done), requested, tally.already, dict(tally.refused))
            return ids[::-1], BulkPreview(len(ids), *counts)
        filter = msgspec.structs.replace(filter, before=found.next)


def preview_jobs(
    verb: BulkVerb | OperatorVerb, ids: Sequence[int], amendment: Amendment | None = None
) -> Verb[list[JobPreview]]:
    """What the verb would do with each of these jobs."""
    jobs = yield from read_jobs(ids)
    taken = yield from _with_taken_keys(verb, list(jobs.values()))
    tally, found = _Tally(amendment), []
    for job_id in ids:
        job = jobs.get(job_id)
        step = NO_JOB if job is None else tally.judge(verb, job, taken)
        cause = step if isinstance(step, str) else None
        found.append(JobPreview(job_id, _status(step), job.state if job else None, cause))
    return found


def _status(step: BulkStep | str) -> PreviewStatus:
    match step:
        case str():
            return PreviewStatus.REFUSED
        case NoChange():
            return PreviewStatus.ALREADY
        case RequestStop():
            return PreviewStatus.REQUESTED
    return PreviewStatus.DONE


def start(
    verb: BulkVerb, filter: JobFilter, amendment: Amendment | None, author: Author
) -> Verb[int]:
    """Store an operation with the set of its jobs. Returns its id."""
    ids, preview = yield from survey(verb, filter, amendment)
    chunks = [ids[first : first + CHUNK] for first in range(0, len(ids), CHUNK)]
    rows = yield from write(
        "start_bulk",
        by=author.by,
        via=author.via,
        reason=author.reason,
        verb=verb.value,
        changes=json_text(amendment),
        filter=json_text(_stored_filter(filter)),
        jobs=len(ids),
        chunks=msgspec.json.encode(chunks).decode(),
        preview=json_text(preview),
    )
    return int(rows[0][0])


def _stored_filter(filter: JobFilter) -> dict[str, Any]:
    """The fields that are set. The order of states must not depend on their hashes."""
    values = {**msgspec.to_builtins(filter), "states": sorted(filter.states)}
    return {
        name: value
        for name, value in values.items()
        if value not in (None, [], {}) and name not in ("before", "limit")
    }


def carry_out_step(operation: int | None = None) -> Verb[bool]:
    """Change the jobs of the next chunk of this operation, or of the oldest that runs. Returns
    whether it did: False if none runs, or another worker was first."""
    is_refused, rechecks = False, _RECHECKS
    rows = yield from read("next_bulk_chunk", operation=operation)
    for _ in range(_TRIES):
        if not rows:
            return False
        chunk = rows[0]
        try:
            yield from _carry_out(chunk, tries_jobs=is_refused, rechecks=rechecks > 0)
        except RowRefused as error:
            index = error.index if isinstance(error, Conflict) else None
            if index in (UNIQUE_INDEX, BULK_STEP_INDEX):
                rows = yield from read("next_bulk_chunk", operation=operation)
                if index == BULK_STEP_INDEX:
                    rechecks -= 1
                    if not rows or rows[0] != chunk:  # it is done, or stopped
                        return False
                continue  # a job changed, or a unique key was taken meanwhile: plan again
            if is_refused:
                yield from _stop(chunk[0], error)
                raise
            is_refused = True
            continue
        return True
    raise StoreUnavailable("the unique keys of a bulk operation kept changing: try again")


def _stop(operation: int, error: RowRefused) -> Verb[None]:
    """Or the operations behind it would wait for ever."""
    author = Author("freehold", "worker", str(error))
    yield from set_state(operation, BulkState.RUNNING, BulkState.STOPPED, "stop", author)


def _carry_out(chunk: Row, *, tries_jobs: bool, rechecks: bool) -> Verb[None]:
    operation, verb_name, by, reason, changes, filter_text, number, ids_text = chunk
    verb, ids = BulkVerb(verb_name), ids_of(ids_text)
    states = msgspec.json.decode(filter_text).get("states")
    jobs = yield from read_jobs(ids)
    present = [jobs[job_id] for job_id in ids if job_id in jobs]
    matching = [job for job in present if not states or job.state in states]
    taken = yield from _with_taken_keys(verb, matching)
    amendment = amendment_of(changes) if changes else None
    tally = _Tally(amendment)
    for job in matching:
        tally.add(verb, job, taken)
    author = f"{by} (bulk {operation})"
    if tries_jobs:
        refused = yield from _refused(tally.planned, author, reason, amendment)
        tally.leave_out(refused)
    event, request_event = EVENTS[verb]
    step = {"operation": operation, "number": number}
    count = {
        "ids": [job.id for job, _ in tally.planned],
        "by": author,
        "event": event,
        "request_event": request_event,
        "already": tally.already,
        "changed": len(ids) - len(matching),
        "refused": json_text(dict(tally.refused) or None),
    }
    recheck = {name: count[name] for name in ("ids", "by", "changed")}
    recheck["states"] = states or [state.value for state in State]
    yield from then_promote(
        [
            Statement("begin_bulk_step", step),
            *_statements(tally.planned, author, reason, amendment),
            Statement("count_bulk_step", {**step, **count}),
            *([Statement("recheck_bulk_step", {**step, **recheck})] if rechecks else []),
            Statement("end_bulk", step),
            *_notifications(tally.planned, amendment),
        ],
        lanes=[job.target for job, _ in tally.planned],
        keys=[job.limit_key for job, _ in tally.planned],
    )


def _refused(
    planned: Sequence[tuple[Job, BulkStep]],
    by: str,
    reason: str | None,
    amendment: Amendment | None,
) -> Verb[dict[int, str]]:
    """The jobs that the database refuses to write even alone, with its errors."""
    if not planned:
        return {}
    try:
        yield from trial(*_statements(planned, by, reason, amendment))
    except RowRefused as error:
        if isinstance(error, Conflict) and error.index == UNIQUE_INDEX:
            raise  # to be planned again. Of a lane there is no conflict: no step takes one.
        if len(planned) == 1:
            return {planned[0][0].id: str(error)}
        half = len(planned) // 2
        first = yield from _refused(planned[:half], by, reason, amendment)
        second = yield from _refused(planned[half:], by, reason, amendment)
        return first | second
    return {}


def _statements(
    planned: Sequence[tuple[Job, BulkStep]],
    by: str,
    reason: str | None,
    amendment: Amendment | None,
) -> list[Statement]:
    changes = [(job, s) for job, s in planned if isinstance(s, Transition | RequestStop)]
    statements = change_statements(changes, by, reason)
    if deleted := [job for job, step in planned if isinstance(step, Delete)]:
        statements.append(Statement("delete", {}, delete_rows(deleted)))
    amended = [(job, step) for job, step in planned if isinstance(step, Amend)]
    if amended and amendment is not None:
        statements.append(amend_statement(amended, amendment, by, reason))
    return statements


def _notifications(
    planned: Sequence[tuple[Job, BulkStep]], amendment: Amendment | None
) -> list[Statement]:
    queues = {job.queue for job, _ in planned}
    if amendment is not None and amendment.queue is not None:
        queues.add(amendment.queue)
    if not queues:
        return []
    return [notifications.notify_within({notifications.queue_topic(queue) for queue in queues})]


def set_state(
    operation: int, seen: BulkState, state: BulkState, verb: str, author: Author
) -> Verb[bool]:
    """False: the operation is in another state than ``seen``. After a stop has returned, no job is
    changed by the operation."""
    rows = yield from write(
        "set_bulk_state",
        operation=operation,
        seen_state=seen.value,
        state=state.value,
        verb=verb,
        by=author.by,
        via=author.via,
        reason=author.reason,
    )
    return bool(rows)


def operations(before: int | None, limit: int) -> Verb[list[BulkOperation]]:
    """Operations, newest first."""
    rows = yield from read(
        "bulk_operations", operation=None, before=before or _LAST_ID, limit=limit
    )
    return [_operation_of(row) for row in rows]


def operation(operation_id: int) -> Verb[BulkOperation | None]:
    rows = yield from read("bulk_operations", operation=operation_id, before=_LAST_ID, limit=1)
    return _operation_of(rows[0]) if rows else None


def _operation_of(row: Row) -> BulkOperation:
    (operation_id, asked_at, ended_at, by, via, reason, verb, changes, filter, jobs) = row[:10]
    (preview, state, done, requested, already, changed, refused_text) = row[10:]
    refused = Counter[str]()
    for each in counts_of(refused_text or "[]"):
        refused.update(each)
    return BulkOperation(
        id=operation_id,
        asked_at=time_of(asked_at),
        ended_at=maybe_time(ended_at),
        by=by,
        via=via,
        reason=reason,
        verb=BulkVerb(verb),
        changes=amendment_of(changes) if changes else None,
        filter=msgspec.json.decode(filter),
        state=BulkState(state),
        jobs=jobs,
        preview=preview_of(preview),
        done=done,
        requested=requested,
        already=already,
        changed=changed,
        refused=dict(refused),
        left=jobs - done - requested - already - changed - refused.total(),
    )
