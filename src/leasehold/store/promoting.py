"""Whatever removes a job from its lane makes the next one its holder, in the same transaction.

Two removals can cross: one waits for the very job that the other takes away, and promotes
nobody. Such a lane is asked again, by a statement that sees what has happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leasehold.store.steps import Rows, Statement, Steps, insistently

_ROUNDS = 10


def promoting(statements: Sequence[Statement], lanes: Iterable[str]) -> Steps[Rows]:
    """Execute the statements, then promote; answers the rows of the first statement."""
    left = sorted(lanes)
    if not left:
        answers = yield from insistently(*statements)
        return answers[0]
    answers = yield from insistently(*statements, _promote(left))
    rows, left = answers[0], [target for (target,) in answers[-1]]
    for _ in range(_ROUNDS):
        if not left:
            break
        again = yield from insistently(_promote(left))
        left = [target for (target,) in again[0]]
    return rows


def _promote(lanes: Sequence[str]) -> Statement:
    return Statement("promote", {}, [{"target": target} for target in lanes])
