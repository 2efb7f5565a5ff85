"""Enqueueing of jobs that hold a key until a worker takes them: see model/waiting.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from freehold.errors import StoreUnavailable
from freehold.model.job import Enqueued, NewJob
from freehold.model.waiting import REPLACEABLE, Waiting
from freehold.store.statements import Statement, Verb, read, together

Placed: TypeAlias = list[tuple[int, NewJob]]

#: A holder can be claimed between the insert and the read, but hardly this often.
_READS = 20
#: The fields of a new job for a name of `replace`, where they are not that name.
_FIELDS = {
    "args": ("args", "policy"),
    "meta": ("meta_json",),
    "run_at": ("run_at", "delay_seconds"),
}


def same_kind(jobs: Sequence[NewJob], limit: int) -> Iterator[Placed]:
    """The jobs with their positions, in order, in parts that one statement can store: with a
    waiting key or without, and with the same rules. A key that occurs again begins a new part, if
    the second job must meet the first as it is stored."""
    part: Placed = []
    keys: set[str] = set()
    for position, job in enumerate(jobs):
        key = None if job.waiting is None or _is_foldable(job) else job.waiting.key
        if part and (len(part) == limit or _rules(part[0][1]) != _rules(job) or key in keys):
            yield part
            part, keys = [], set()
        part.append((position, job))
        if key is not None:
            keys.add(key)
    if part:
        yield part


def _is_foldable(job: NewJob) -> bool:
    """Whether the effect of a second job with its key is known here. Where the time is replaced, it
    depends on the stage of the stored job, which is simple only outside of lanes."""
    return "run_at" not in _rule(job).replace or (job.target is None and not job.pending)


def _rules(job: NewJob) -> tuple[object, ...] | None:
    waiting = job.waiting
    if waiting is None:
        return None
    return (waiting.replace, waiting.at_most_seconds, waiting.throttle_seconds is not None)


def store_waiting(
    jobs: Placed, row_of: Callable[[int, NewJob], dict[str, Any]], answers: dict[int, Enqueued]
) -> Verb[None]:
    """Insert jobs whose keys are free, and replace what the waiting jobs of the other keys carry. A
    waiting job that keeps all it has is read; if it was claimed meanwhile, its key is free."""
    waiting, later = _folded(jobs)
    yield from _store_first(waiting, row_of, answers)
    for position, first in later.items():
        found, replaces = answers[first], bool(_rule(jobs[0][1]).replace)
        answers[position] = msgspec.structs.replace(found, created=False, replaced=replaces)


def _folded(jobs: Placed) -> tuple[dict[int, NewJob], dict[int, int]]:
    """The first job of each key, as it is after the later ones have replaced what they may; and the
    position of the first job for each later one."""
    first: dict[str, int] = {}
    folded: dict[int, NewJob] = {}
    later: dict[int, int] = {}
    for position, job in jobs:
        rule = _rule(job)
        holder = first.setdefault(rule.key, position)
        if holder == position:
            folded[position] = job
            continue
        later[position] = holder
        fields = [field for name in rule.replace for field in _FIELDS.get(name, (name,))]
        changes = {field: getattr(job, field) for field in fields}
        folded[holder] = msgspec.structs.replace(folded[holder], **changes)
    return folded, later


def _store_first(
    waiting: dict[int, NewJob],
    row_of: Callable[[int, NewJob], dict[str, Any]],
    answers: dict[int, Enqueued],
) -> Verb[None]:
    for _ in range(_READS):
        left = [row_of(position, job) for position, job in waiting.items()]
        statements = _statements(list(waiting.values()), left)
        results = yield from together(*statements)
        for position, id_, created, created_at in results[len(statements) // 2]:  # the middle one
            answers[position] = Enqueued(id_, bool(created), not created, created_at)
            del waiting[position]
        if waiting:
            keys = [{"position": n, "waiting_key": _rule(job).key} for n, job in waiting.items()]
            for position, id_, created_at in (yield from read("find_waiting", rows=keys)):
                answers[position] = Enqueued(id_, False, False, created_at)
                del waiting[position]
        if not waiting:
            return
    raise StoreUnavailable("a waiting job kept being claimed while its key was read: try again")


def _statements(jobs: Sequence[NewJob], rows: list[dict[str, Any]]) -> list[Statement]:
    rule = _rule(jobs[0])
    throttled = rule.throttle_seconds is not None
    if not rule.replace:
        return [Statement("enqueue_waiting", {"throttled": False}, rows)]
    params: dict[str, Any] = {f"replaces_{name}": name in rule.replace for name in REPLACEABLE}
    params |= {"at_most_seconds": rule.at_most_seconds, "throttled": throttled}
    statement = Statement("enqueue_replacing", params, rows)
    if not throttled:
        return [statement]
    windows = [{"key": _rule(job).key, "seconds": _rule(job).throttle_seconds} for job in jobs]
    return [
        Statement("lock_throttles", {}, windows),
        statement,
        Statement("advance_throttles", {}, windows),
    ]


def _rule(job: NewJob) -> Waiting:
    assert job.waiting is not None
    return job.waiting
