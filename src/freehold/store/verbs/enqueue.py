"""Enqueueing: a request becomes a stored job."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from freehold.errors import OutcomeUnknown, StoreError, StoreUnavailable
from freehold.model.job import Enqueued, NewJob
from freehold.model.policy import DEFAULT_POLICY, pack
from freehold.store import notifications
from freehold.store.notifications import NotifyLimiter, notifications_for
from freehold.store.rows import json_text
from freehold.store.statements import Conflict, Rows, Statement, StatementGroup, Verb, read, write
from freehold.store.verbs.enqueue_waiting import same_kind, store_waiting

T = TypeVar("T")

#: The holder of a key can change between two reads, but hardly this often.
_READS = 20
#: A statement of many thousand rows would hold its locks long and be no faster.
ENQUEUE_BATCH = 1000


def enqueue(jobs: Sequence[NewJob], limiter: NotifyLimiter | None = None) -> Verb[list[Enqueued]]:
    """Store jobs; returns one result each, in order. Of several live jobs with one unique key only
    one exists; a remembered idempotency key returns the job it made. Workers are notified once the
    jobs are stored: by the limiter, as often as is useful; without one in the same transaction,
    which may be a caller's."""
    if len(jobs) == 1 and limiter is not None and _special(jobs[0]) == _NOTHING_SPECIAL:
        return _enqueue_plain(jobs[0], limiter)
    return _enqueue(jobs, limiter)


def _enqueue(jobs: Sequence[NewJob], limiter: NotifyLimiter | None) -> Verb[list[Enqueued]]:
    if not jobs:
        return []
    topics, age = notifications_for(jobs), None
    notify = notifications.notify_within if limiter is None else notifications.notify_after
    if set(map(_keys, jobs)) != {_NO_KEYS}:
        stored, notified = (yield from _enqueue_with_keys(jobs)), set[str]()
    else:
        notified = {topic for topic in topics if limiter is None or limiter.with_job(topic)[0]}
        try:
            # All or none: a caller that gets an error may call again.
            drawn = yield StatementGroup(
                _statements(jobs), True, notify(notified) if notified else None
            )
        except BaseException:  # also when the call was canceled
            if limiter is not None:
                for topic in notified:
                    limiter.failed(topic)
            raise
        # The store knows the age of the queue's notification, not of those of scheduled jobs.
        if limiter is not None and len(jobs) == 1 and notifications.SCHEDULED not in topics:
            ((_, _, age),) = drawn[0]
        stored = _stored(drawn)
    if limiter is None:
        left: Collection[str] = topics - notified
    else:
        left = limiter.after_jobs(topics, notified, age, stored[-1].id)
    if left:
        yield from _notify(notify(left))
    return stored


def _stored(drawn: list[Rows]) -> list[Enqueued]:
    """In the order of the jobs: ids are drawn in it, in each statement after those of the one
    before. All jobs of a statement have one time, which at least one of its rows has."""
    made: list[Enqueued] = []
    for rows in drawn:
        created_at = next(row[1] for row in rows if row[1] is not None)
        ids = sorted([row[0] for row in rows])
        made += [Enqueued(id_, True, False, created_at) for id_ in ids]
    return made


def _enqueue_plain(job: NewJob, limiter: NotifyLimiter) -> Verb[list[Enqueued]]:
    """One job that is due at once, with no options: the commonest call, kept short."""
    topic = notifications.queue_topic(job.queue)
    notified, needs_age = limiter.with_job(topic)
    name = "enqueue_with_notify_age" if needs_age else "enqueue_plain"
    try:
        drawn = yield StatementGroup(
            (_plain(job, name),), True, notifications.notify_after((topic,)) if notified else None
        )
    except BaseException:  # also when the call was canceled
        if notified:
            limiter.failed(topic)
        raise
    (row,) = drawn[0]
    id_, created_at, age = row if needs_age else (*row, None)
    if limiter.after_jobs((topic,), (topic,) if notified else (), age, id_):
        yield from _notify(notifications.notify_after((topic,)))
    return [Enqueued(id_, True, False, created_at)]


def _notify(notification: Statement) -> Verb[None]:
    """The jobs are stored already: a lost notification is no error."""
    with contextlib.suppress(StoreError):
        yield StatementGroup((notification,), writes=False)


def _enqueue_with_keys(jobs: Sequence[NewJob]) -> Verb[list[Enqueued]]:
    """One job with a key sends all of them this longer way, so that they keep their order."""
    answers: dict[int, Enqueued] = {}
    for part in same_kind(jobs, ENQUEUE_BATCH):
        yield from _enqueue_keyed(part, answers)
    return [answers[position] for position in range(len(jobs))]


def _statements(jobs: Sequence[NewJob]) -> tuple[Statement, ...]:
    if len(jobs) > 1:
        return tuple(_several(jobs))
    plain = _special(jobs[0]) == _NOTHING_SPECIAL  # in a caller's transaction
    return (
        _plain(jobs[0], "enqueue_plain") if plain else Statement("enqueue_one", job_row(jobs[0])),
    )


def _plain(job: NewJob, name: str) -> Statement:
    return Statement(
        name,
        {
            "task": job.task,
            "queue": job.queue,
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "args": job.args.decode(),
        },
    )


_special = attrgetter(
    "run_at",
    "delay_seconds",
    "target",
    "limit_key",
    "unique_key",
    "idempotency_key",
    "timeout_seconds",
    "tags",
    "policy",
    "pending",
    "meta_json",
    "waiting",
    "start_by",
)
_NOTHING_SPECIAL = _special(NewJob(task="any"))
#: A time to start by is stored in the same way: the shorter ways do not pay for its column.
_keys = attrgetter("unique_key", "idempotency_key", "waiting", "start_by")
_NO_KEYS = (None, None, None, None)


def _several(jobs: Sequence[NewJob]) -> Iterator[Statement]:
    for part in _parts(jobs):
        numbers, shapes = shapes_of(part)
        calls = [job.args.decode() for job in part]
        yield Statement("enqueue", {"calls": calls, "numbers": numbers}, shapes)


shape_of_job = attrgetter(
    "task",
    "queue",
    "priority",
    "max_attempts",
    "pending",
    "run_at",
    "delay_seconds",
    "target",
    "limit_key",
    "timeout_seconds",
)


def shapes_of(
    jobs: Sequence[NewJob],
    shape_of: Callable[[NewJob], tuple[Any, ...]] = shape_of_job,
    columns_of: Callable[[NewJob], dict[str, Any]] | None = None,
) -> tuple[list[int], list[dict[str, Any]]]:
    """What jobs have in common, all but their arguments, is sent once for all of them: the number
    of each job's shape, and the shapes. ``columns_of``: more columns of a shape.

    Of jobs that enter a lane together only the first is ready, the others follow it: they become
    visible together, so that the lane always has a ready job.
    """
    known: dict[tuple[Any, ...], int] = {}
    entered: set[str] = set()
    numbers: list[int] = []
    shapes: list[dict[str, Any]] = []
    for job in jobs:
        target, follows = job.target, False
        if target is not None and job.is_due_at_once:
            follows = target in entered
            entered.add(target)
        # Tags, policy and metadata by identity: jobs of one task share them, a hash takes longer.
        shape = (shape_of(job), id(job.tags), id(job.policy), id(job.meta_json), follows)
        number = known.setdefault(shape, len(shapes))
        numbers.append(number)
        if number == len(shapes):
            row = job_row(job)
            del row["args"]
            if columns_of is not None:
                row.update(columns_of(job))
            shapes.append({**row, "number": number, "follows": follows})
    return numbers, shapes


def _parts(jobs: Sequence[T]) -> list[Sequence[T]]:
    return [jobs[start : start + ENQUEUE_BATCH] for start in range(0, len(jobs), ENQUEUE_BATCH)]


def job_row(job: NewJob) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "args": job.args.decode(),
        "max_attempts": job.max_attempts,
        "pending": job.pending,
        "run_at": job.run_at,
        "delay_seconds": job.delay_seconds,
        "target": job.target,
        "limit_key": job.limit_key,
        "unique_key": job.unique_key,
        "timeout_seconds": job.timeout_seconds,
        "tags": json_text(job.tags) if job.tags else None,
        "policy": None if job.policy is DEFAULT_POLICY else json_text(pack(job.policy)),
        "meta": job.meta_json,
    }
    return row


def _enqueue_keyed(jobs: list[tuple[int, NewJob]], answers: dict[int, Enqueued]) -> Verb[None]:
    """Adds to ``answers``, which has those of earlier parts.

    These are several transactions. Once one of them has stored or replaced a job, a later failure
    must not be reported as one after which nothing was written.
    """
    try:
        if jobs[0][1].waiting is None:
            yield from _insert_or_find(jobs, answers)
        else:
            yield from store_waiting(jobs, _waiting_row, answers)
    except StoreError as error:
        written = any(each.created or each.replaced for each in answers.values())
        if isinstance(error, OutcomeUnknown) or not written:
            raise
        raise OutcomeUnknown(
            f"some of these jobs were stored or replaced, then the store failed ({error}); a call "
            "with the same keys finds the jobs that still hold them, and stores the others again"
        ) from error


def _insert_or_find(jobs: list[tuple[int, NewJob]], answers: dict[int, Enqueued]) -> Verb[None]:
    """Insert jobs whose keys are free; read the holders of the other keys.

    A holder can finish between the insert and the read; then the job is inserted again.
    """
    twins = _twins(jobs)
    left = {position: job for position, job in jobs if position not in twins}
    for _ in range(_READS):
        rows = [_keyed_row(position, job) for position, job in left.items()]
        try:
            inserted = yield from write("enqueue_keyed", rows)
        except Conflict:
            continue  # the same idempotency key was committed meanwhile, and is visible now
        for position, id_, created_at in inserted:
            answers[position] = Enqueued(id_, True, False, created_at)
            del left[position]
        if left:
            answers.update((yield from _find_holders(left)))
        if not left:
            for position, twin in twins.items():
                answers[position] = msgspec.structs.replace(answers[twin], created=False)
            return
    raise StoreUnavailable(
        "the holder of a unique or idempotency key kept changing while it was read: try again"
    )


def _twins(jobs: list[tuple[int, NewJob]]) -> dict[int, int]:
    """Jobs of one call that share an idempotency key: later position -> first position."""
    first: dict[str, int] = {}
    twins: dict[int, int] = {}
    for position, job in jobs:
        if job.idempotency_key is None:
            continue
        holder = first.setdefault(job.idempotency_key, position)
        if holder != position:
            twins[position] = holder
    return twins


def _keyed_row(position: int, job: NewJob) -> dict[str, Any]:
    return {
        "position": position,
        **job_row(job),
        "idempotency_key": job.idempotency_key,
        "idempotency_seconds": job.idempotency_seconds,
        **start_by_columns(job),
    }


def start_by_columns(job: NewJob) -> dict[str, Any]:
    is_time = isinstance(job.start_by, datetime)
    return {
        "start_by": job.start_by if is_time else None,
        "start_by_seconds": None if is_time else job.start_by,
    }


def _waiting_row(position: int, job: NewJob) -> dict[str, Any]:
    assert job.waiting is not None
    return {"position": position, **job_row(job), "waiting_key": job.waiting.key}


def _find_holders(left: dict[int, NewJob]) -> Verb[dict[int, Enqueued]]:
    """Returns the holders of the keys, and remembers each under the caller's idempotency key."""
    rows = [
        {"position": position, "unique_key": job.unique_key, "idempotency_key": job.idempotency_key}
        for position, job in left.items()
    ]
    found = yield from read("find_holders", rows=rows)
    answers: dict[int, Enqueued] = {}
    remember: list[dict[str, Any]] = []
    for position, holder, created_at in found:
        job = left.pop(position)
        answers[position] = Enqueued(holder, False, False, created_at)
        if job.idempotency_key is not None:
            remember.append(
                {"key": job.idempotency_key, "job_id": holder, "seconds": job.idempotency_seconds}
            )
    if remember:
        yield from write("remember_key", remember)
    return answers
