"""6. What keeps the store in order, bounded and safe to run everywhere at once."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.store.chores import Chores
from leasehold.store.steps import Steps, read, write


def make_ready(limit: int) -> Steps[int]:
    rows = yield from write("make_ready", limit=limit)
    return len(rows)


def chores(tasks: Sequence[str]) -> Steps[Chores]:
    rows = yield from read("chores", tasks=sorted(set(tasks)))
    expired, limited, stopped, parked, due_seconds, workers = rows[0]
    return Chores(
        expired=bool(expired),
        limited=bool(limited),
        stopped=bool(stopped),
        parked=bool(parked),
        due_seconds=None if due_seconds is None else max(0.0, float(due_seconds)),
        workers=workers,
    )


def unpark(tasks: Sequence[str], limit: int) -> Steps[int]:
    rows = yield from write("unpark", tasks=sorted(set(tasks)), limit=limit)
    return len(rows)


def retain(history_days: float, limit: int) -> Steps[int]:
    days = yield from write("turn_days", history_days=history_days)
    rows = yield from write("retain", history_days=history_days, limit=limit)
    return sum(row[0] for row in days + rows)
