"""1. A request becomes a stored job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from freehold.errors import OutcomeUnknown, StoreError, StoreUnavailable
from freehold.model.job import Enqueued, NewJob
from freehold.model.policy import DEFAULT_POLICY, pack
from freehold.store import notifications
from freehold.store.notify_limiter import NotifyLimiter, notifications_for
from freehold.store.rows import json_text
from freehold.store.statements import Conflict, Statement, StatementGroup, Verb, read, write

T = TypeVar("T")

#: A key can change hands between two looks at it, but hardly this often.
_LOOKS = 20
#: One statement of many thousand rows holds its locks long and buys nothing more.
ENQUEUE_BATCH = 1000


#: So many neighbours that differ only in their arguments are worth a statement of their own.
_ALIKE = 20


def enqueue(jobs: Sequence[NewJob], crier: NotifyLimiter | None = None) -> Verb[list[Enqueued]]:
    """Those who wait for these jobs are told when they are there: by the crier, if that is worth
    it; without one by the same transaction, which may be a caller's."""
    if len(jobs) == 1 and crier is not None and _special(jobs[0]) == _NOTHING_SPECIAL:
        return _enqueue_plain(jobs[0], crier)
    return _enqueue(jobs, crier)


def _enqueue(jobs: Sequence[NewJob], crier: NotifyLimiter | None) -> Verb[list[Enqueued]]:
    if not jobs:
        return []
    news, ago = notifications_for(jobs), None
    say = notifications.notify_within if crier is None else notifications.notify_after
    if any(map(_has_key, jobs)):
        answers, told = (yield from _enqueue_with_keys(jobs)), set[str]()
    else:
        told = {hint for hint in news if crier is None or crier.before(hint)}
        try:
            # All or none: whoever is told that it failed may call again.
            drawn = yield StatementGroup(_statements(jobs), True, say(told) if told else None)
        except BaseException:  # also when nobody waits for it any more
            if crier is not None:
                for hint in told:
                    crier.failed(hint)
            raise
        # What the store can say is when its queue was told of, not what will be due.
        if len(jobs) == 1 and notifications.SCHEDULED not in news:
            ago = drawn[0][0][1]
        # Ids are drawn in the order of the jobs, whichever way they go.
        answers = [Enqueued(id_, True) for id_ in sorted(row[0] for rows in drawn for row in rows)]
    late = news - told
    if crier is not None:
        crowd = crier.crowd(answers[-1].id)
        late = {hint for hint in news if crier.after(hint, hint in told, ago, crowd)}
    if late:
        yield from _tell(say(late))
    return answers


def _enqueue_plain(job: NewJob, crier: NotifyLimiter) -> Verb[list[Enqueued]]:
    """One job that is due at once and has nothing special: what most calls bring, kept short."""
    hint = notifications.queue_ready(job.queue)
    told = crier.before(hint)
    statement = _plain(job, "enqueue_asking" if crier.wonders(hint) else "enqueue_plain")
    try:
        drawn = yield StatementGroup(
            (statement,), True, notifications.notify_after((hint,)) if told else None
        )
    except BaseException:  # also when nobody waits for it any more
        if told:
            crier.failed(hint)
        raise
    id_, ago = drawn[0][0]
    if crier.after(hint, told, ago, crier.crowd(id_)):
        yield from _tell(notifications.notify_after((hint,)))
    return [Enqueued(id_, True)]


def _tell(hint: Statement) -> Verb[None]:
    """A hint only: the jobs are safe."""
    with contextlib.suppress(StoreError):
        yield StatementGroup((hint,), writes=False)


def _enqueue_with_keys(jobs: Sequence[NewJob]) -> Verb[list[Enqueued]]:
    """One key sends all of them the longer way: they keep their order."""
    answers: dict[int, Enqueued] = {}
    for part in _parts(list(enumerate(jobs))):
        yield from _enqueue_keyed(list(part), answers)
    return [answers[place] for place in range(len(jobs))]


_shape = attrgetter(*(name for name in NewJob.__struct_fields__ if name != "args"))


def _statements(jobs: Sequence[NewJob]) -> tuple[Statement, ...]:
    if len(jobs) > 1:
        return tuple(_several(jobs))
    plain = _special(jobs[0]) == _NOTHING_SPECIAL  # in a caller's transaction
    return (_plain(jobs[0], "enqueue_plain") if plain else Statement("enqueue_one", _row(jobs[0])),)


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
)
_NOTHING_SPECIAL = _special(NewJob(task="any"))


def _several(jobs: Sequence[NewJob]) -> Iterator[Statement]:
    """Most calls bring many jobs of one task: they share all but their arguments, which are then
    all that travels for each."""
    mixed: list[NewJob] = []
    for _, run in groupby(jobs, _shape):
        alike = list(run)
        if len(alike) < _ALIKE or alike[0].target is not None:
            mixed += alike
            continue
        yield from _mixed(mixed)
        mixed = []
        shared = _row(alike[0])
        del shared["args"]
        for part in _parts(alike):
            calls = json_text([job.args.decode() for job in part])
            yield Statement("enqueue_alike", {"calls": calls, **shared})
    yield from _mixed(mixed)


def _mixed(jobs: list[NewJob]) -> Iterator[Statement]:
    return (Statement("enqueue", {}, _rows(part)) for part in _parts(jobs))


def _parts(jobs: Sequence[T]) -> list[Sequence[T]]:
    return [jobs[start : start + ENQUEUE_BATCH] for start in range(0, len(jobs), ENQUEUE_BATCH)]


def _has_key(job: NewJob) -> bool:
    return job.unique_key is not None or job.idempotency_key is not None


def _rows(jobs: Sequence[NewJob]) -> list[dict[str, Any]]:
    """Of jobs that enter a lane together, the first stands ready for all: they become visible
    together, so the lane always has somebody ready."""
    entered: set[str] = set()
    rows = []
    for job in jobs:
        enters = job.target is not None and job.is_due_at_once
        rows.append({**_row(job), "follows": enters and job.target in entered})
        if enters and job.target is not None:
            entered.add(job.target)
    return rows


def _row(job: NewJob) -> dict[str, Any]:
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
    }
    return row


def _enqueue_keyed(jobs: list[tuple[int, NewJob]], answers: dict[int, Enqueued]) -> Verb[None]:
    """The answers are added to those of the parts before.

    These are several transactions. Once one of them has stored a job, no later failure may be
    told as one after which nothing was written.
    """
    try:
        yield from _insert_or_find(jobs, answers)
    except StoreError as error:
        if isinstance(error, OutcomeUnknown) or not any(each.created for each in answers.values()):
            raise
        raise OutcomeUnknown(
            f"some of these jobs were stored, then the store failed ({error}); repeat the call "
            "with the same idempotency keys"
        ) from error


def _insert_or_find(jobs: list[tuple[int, NewJob]], answers: dict[int, Enqueued]) -> Verb[None]:
    """Insert what no key forbids; look up the holders of the keys that did.

    A holder can vanish between the insert that met it and the look for it; then the job
    gets another chance to be inserted.
    """
    twins = _twins(jobs)
    waiting = {place: job for place, job in jobs if place not in twins}
    for _ in range(_LOOKS):
        rows = [_keyed_row(place, job) for place, job in waiting.items()]
        try:
            born = yield from write("enqueue_keyed", rows)
        except Conflict:
            continue  # the same idempotency key was committed meanwhile: now it can be seen
        answers.update((place, Enqueued(id_, True)) for place, id_ in born)
        for place, _id in born:
            del waiting[place]
        if waiting:
            answers.update((yield from _find_holders(waiting)))
        if not waiting:
            for place, twin in twins.items():
                answers[place] = Enqueued(answers[twin].id, False)
            return
    raise StoreUnavailable(
        "a unique or idempotency key kept changing hands while it was looked up: try again"
    )


def _twins(jobs: list[tuple[int, NewJob]]) -> dict[int, int]:
    """Jobs of one call that share an idempotency key: later place -> first place."""
    first: dict[str, int] = {}
    twins: dict[int, int] = {}
    for place, job in jobs:
        if job.idempotency_key is None:
            continue
        holder = first.setdefault(job.idempotency_key, place)
        if holder != place:
            twins[place] = holder
    return twins


def _keyed_row(place: int, job: NewJob) -> dict[str, Any]:
    return {
        "place": place,
        **_row(job),
        "idempotency_key": job.idempotency_key,
        "idempotency_seconds": job.idempotency_seconds,
    }


def _find_holders(waiting: dict[int, NewJob]) -> Verb[dict[int, Enqueued]]:
    """Answer from the jobs that hold the keys, and remember the answer under its own key."""
    rows = [
        {"place": place, "unique_key": job.unique_key, "idempotency_key": job.idempotency_key}
        for place, job in waiting.items()
    ]
    found = yield from read("find_holders", rows=rows)
    answers: dict[int, Enqueued] = {}
    remember: list[dict[str, Any]] = []
    for place, holder in found:
        job = waiting.pop(place)
        answers[place] = Enqueued(holder, False)
        if job.idempotency_key is not None:
            remember.append(
                {"key": job.idempotency_key, "job_id": holder, "seconds": job.idempotency_seconds}
            )
    if remember:
        yield from write("remember_key", remember)
    return answers
