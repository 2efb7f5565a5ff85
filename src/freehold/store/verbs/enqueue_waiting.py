"""Enqueueing of jobs that hold a key until a worker takes them: see model/waiting.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from freehold.errors import StoreUnavailable
from freehold.model.job import Enqueued, NewJob
from freehold.model.waiting import REPLACEABLE, Waiting
from freehold.store.rows import time_of
from freehold.store.statements import Statement, Verb, read, together

Placed: TypeAlias = list[tuple[int, NewJob]]

#: A holder can be claimed between the insert and the read, but hardly this often.
_READS = 20


def same_kind(jobs: Sequence[NewJob], limit: int) -> Iterator[Placed]:
    """The jobs with their positions, in order, in parts that one statement can store: with a
    waiting key or without, and with the same rules. A key that occurs again begins a new part,
    because the second job meets the first."""
    part: Placed = []
    keys: set[str] = set()
    for position, job in enumerate(jobs):
        key = None if job.waiting is None else job.waiting.key
        if part and (len(part) == limit or _rules(part[0][1]) != _rules(job) or key in keys):
            yield part
            part, keys = [], set()
        part.append((position, job))
        if key is not None:
            keys.add(key)
    if part:
        yield part


def _rules(job: NewJob) -> tuple[object, ...] | None:
    waiting = job.waiting
    if waiting is None:
        return None
    return (waiting.replace, waiting.at_most_seconds, waiting.throttle_seconds is not None)


def store_waiting(
    jobs: Placed, rows: list[dict[str, Any]], answers: dict[int, Enqueued]
) -> Verb[None]:
    """Insert jobs whose keys are free, and replace what the waiting jobs of the other keys carry. A
    waiting job that keeps all it has is read; if it was claimed meanwhile, its key is free."""
    waiting = dict(jobs)
    for _ in range(_READS):
        left = [row for row in rows if row["position"] in waiting]
        statements = _statements(list(waiting.values()), left)
        results = yield from together(*statements)
        for position, id_, created, created_at in results[len(statements) // 2]:  # the middle one
            answers[position] = Enqueued(
                id_, bool(created), replaced=not created, created_at=time_of(created_at)
            )
            del waiting[position]
        if waiting:
            keys = [{"position": n, "waiting_key": _rule(job).key} for n, job in waiting.items()]
            for position, id_, created_at in (yield from read("find_waiting", rows=keys)):
                answers[position] = Enqueued(id_, False, created_at=time_of(created_at))
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
