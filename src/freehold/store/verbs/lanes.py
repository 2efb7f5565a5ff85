"""Whatever takes a job away frees what others wait for: its lane, and room under its limit.

The next of a lane becomes its holder in the same transaction, by a statement of its own, whose
snapshot is younger than the locks that the first one won. Two removals can cross: one waits for
the very job that the other takes away, and promotes nobody. Such a lane is asked again, by a
statement that sees what has happened meanwhile. Not in the same transaction: its locks are taken in
the order of the jobs, and more of them would come after. Should the process end between the two,
nobody holds that lane, and those who walk over all of them (`free_lanes`) find it.

What waits for a limit_key is made ready last, behind the lock that claims count under: after
that, nobody here waits for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from freehold.store import notifications
from freehold.store.statements import Rows, Statement, Verb, insistently, read
from freehold.store.sweep_check import LaneScan

_ROUNDS = 10


def then_promote(
    statements: Sequence[Statement],
    *,
    lanes: Iterable[str | None] = (),
    keys: Iterable[str | None] = (),
) -> Verb[Rows]:
    """Execute the statements, then free; answers the rows of the first statement."""
    left = sorted({target for target in lanes if target is not None})
    promotions = [_promote(left)] if left else []
    admissions = then_admit({key for key in keys if key is not None})
    answers = yield from insistently(*statements, *promotions, *admissions)
    rows = answers[0]
    if promotions:
        yield from _promote_again([target for (target,) in answers[len(statements)]])
    return rows


def _promote_again(lanes: list[str]) -> Verb[None]:
    for _ in range(_ROUNDS):
        if not lanes:
            break
        again = yield from insistently(_promote(lanes))
        lanes = [target for (target,) in again[0]]


def promote_stalled_lanes(after: str, limit: int) -> Verb[LaneScan]:
    rows = yield from read("adrift", after=after, limit=limit)
    adrift = [(target, queue) for target, queue in rows if queue is not None]
    for target, queue in adrift:
        # One by one: whoever waits for a lock here holds none. Who cannot be had now can be later.
        yield from insistently(
            _promote([target]), notifications.notify_within([notifications.queue_ready(queue)])
        )
    freed = tuple(target for target, _ in adrift)
    return LaneScan(freed, rows[-1][0] if len(rows) == limit else "")


def _promote(lanes: Sequence[str]) -> Statement:
    return Statement("promote", {}, [{"target": target} for target in lanes])


def then_admit(keys: Iterable[str]) -> list[Statement]:
    """What waits for these keys becomes ready, as far as there is room."""
    chosen = sorted(keys)
    if not chosen:
        return []
    return [
        Statement("lock_limits", {}, [{"name": f"k/{key}"} for key in chosen]),
        Statement("admit", {}, [{"limit_key": key} for key in chosen]),
    ]
