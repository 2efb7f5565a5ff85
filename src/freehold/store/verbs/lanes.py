"""Promotion: removing a job frees its lane, and room under its limit, for waiting jobs.

The next job of a lane becomes its holder in the same transaction, by a statement of its own, whose
snapshot is younger than the locks of the first one. Two transactions that each remove a job of the
same lane can both miss the next job. The verb then sends `promote` once more, in a new transaction:
a second set of row locks in the first one would break the lock order and could deadlock. If the
process ends between the two, the lane has no holder, and the scan over all lanes
(`stalled_lanes`) finds it.

Jobs that wait for a limit key are admitted last: their lock is the one that claims count under, and
no other lock may be taken after it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from freehold.errors import RowRefused
from freehold.store.statements import Rows, Statement, Verb, together_retrying_lanes

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
    promotions = [promotion(left)] if left else []
    admissions = then_admit({key for key in keys if key is not None})
    executed = [*preceded_by, *statements]
    try:
        answers = yield from together_retrying_lanes(*executed, *promotions, *admissions)
    except RowRefused:
        if not promotions and not admissions:
            raise
        answers = yield from _one_by_one(executed, left, admissions)
        return answers[len(preceded_by)]
    rows = answers[len(preceded_by)]
    if promotions:
        yield from _promote_again([target for (target,) in answers[len(executed)]])
    return rows


def _one_by_one(
    statements: Sequence[Statement], lanes: Sequence[str], admissions: Sequence[Statement]
) -> Verb[list[Rows]]:
    """A waiting job that the database refuses to write must not fail the end of another job. It is
    left to the sweeps, which set it aside."""
    answers = yield from together_retrying_lanes(*statements)
    for group in [*([promotion([target])] for target in lanes), admissions]:
        if group:
            with contextlib.suppress(RowRefused):
                yield from together_retrying_lanes(*group)
    return answers


def _promote_again(lanes: list[str]) -> Verb[None]:
    for _ in range(_ROUNDS):
        if not lanes:
            break
        again = yield from together_retrying_lanes(promotion(lanes))
        lanes = [target for (target,) in again[0]]


def promotion(lanes: Sequence[str]) -> Statement:
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
