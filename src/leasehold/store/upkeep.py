"""6. What keeps the store in order, bounded and safe to run everywhere at once."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.store.steps import Steps, read, write


def make_ready(limit: int) -> Steps[int]:
    rows = yield from write("make_ready", limit=limit)
    return len(rows)


def next_due_seconds() -> Steps[float | None]:
    rows = yield from read("next_due")
    seconds = rows[0][0]
    return None if seconds is None else max(0.0, float(seconds))


def unpark(tasks: Sequence[str], limit: int) -> Steps[int]:
    rows = yield from write("unpark", tasks=sorted(set(tasks)), limit=limit)
    return len(rows)


def retain(history_days: float, limit: int) -> Steps[int]:
    days = yield from write("turn_days", history_days=history_days)
    rows = yield from write("retain", history_days=history_days, limit=limit)
    return sum(row[0] for row in days + rows)
