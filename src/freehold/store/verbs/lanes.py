"""Promotion: removing a job frees its lane, and room under its limit, for waiting jobs.

The next job of a lane becomes its holder in the same transaction, by a statement of its own, whose
snapshot is younger than the locks of the first one. Two transactions that each remove a job of the
same lane can both miss the next job. The verb then sends `promote` once more, in a new transaction:
a second set of row locks in the first one would break the lock order and could deadlock. If the
process ends between the two, the lane has no holder, and the scan over all lanes
(`promote_stalled_lanes`) finds it.

Jobs that wait for a limit key are admitted last: their lock is the one that claims count under, and
no other lock may be taken after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freehold.store import notifications
from freehold.store.statements import Rows, Statement, Verb, read, together_retrying_lanes
from freehold.store.types import LaneScan

_ROUNDS = 10


def then_promote(
    statements: Sequence[Statement],
    *,
    lanes: Iterable[str | None] = (),
    keys: Iterable[str | None] = (),
    preceded_by: Sequence[Statement] = (),
) -> Verb[Rows]:
    """Execute the statements, then promote and admit. Returns the rows of the first statement.
    ``preceded_by``: statements that come before it, in the same transaction."""
    left = sorted({target for target in lanes if target is not None})
    promotions = [_promote(left)] if left else []
    admissions = then_admit({key for key in keys if key is not None})
    executed = [*preceded_by, *statements]
    answers = yield from together_retrying_lanes(*executed, *promotions, *admissions)
    rows = answers[len(preceded_by)]
    if promotions:
        yield from _promote_again([target for (target,) in answers[len(executed)]])
    return rows


def _promote_again(lanes: list[str]) -> Verb[None]:
    for _ in range(_ROUNDS):
        if not lanes:
            break
        again = yield from together_retrying_lanes(_promote(lanes))
        lanes = [target for (target,) in again[0]]


def promote_stalled_lanes(after: str, limit: int) -> Verb[LaneScan]:
    """Scan this many lanes after ``after``, and promote the next job of those without a holder. A
    safety net: every verb that removes a job does the same."""
    rows = yield from read("stalled_lanes", after=after, limit=limit)
    stalled = [(target, queue) for target, queue in rows if queue is not None]
    for target, queue in stalled:
        # One by one, so that no lock is held while waiting for another.
        yield from together_retrying_lanes(
            _promote([target]), notifications.notify_within([notifications.queue_ready(queue)])
        )
    freed = tuple(target for target, _ in stalled)
    return LaneScan(freed, rows[-1][0] if len(rows) == limit else "")


def _promote(lanes: Sequence[str]) -> Statement:
    return Statement("promote", {}, [{"target": target} for target in lanes])


def then_admit(keys: Iterable[str]) -> list[Statement]:
    """Jobs that wait for these keys become ready, as far as there is room."""
    chosen = sorted(keys)
    if not chosen:
        return []
    return [
        Statement("lock_limits", {}, [{"name": f"k/{key}"} for key in chosen]),
        Statement("admit", {}, [{"limit_key": key} for key in chosen]),
    ]
