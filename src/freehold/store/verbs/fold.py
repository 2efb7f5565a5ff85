"""Folding: the ends of members, from the worklist into the counters of their flows.

A fold tries the lock of a flow and does not wait for it. One that does not get it leaves its rows
to the holder, so the holder looks again after its commit: rows that it did not see were committed
before the other fold tried, and the second look has a younger snapshot. A process that dies before
its look is covered by the next sweep.

Neither does it wait for the row of a flow. Most transactions have it for a moment; that of a
producer can have it for minutes, in which the other flows go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from freehold.store.statements import Conflict, Statement, Verb, read, together

#: Rows of one flow that one transaction folds.
ROWS = 10_000
#: So often is a row tried that another transaction has.
_TRIES = 5


def fold_flows(flows: Sequence[int]) -> Verb[tuple[list[int], bool]]:
    """Fold the ends of members of these flows. Returns those with something to act upon, and
    whether some were left because other transactions have their rows."""
    due: dict[int, None] = {}
    wanted, busy, tries = list(dict.fromkeys(flows)), list[int](), _TRIES
    while wanted:
        locked, busy = yield from _fold(wanted)
        tries -= bool(busy)
        wanted = list(busy) if tries else []
        for flow, has_rows, is_due in (yield from _look(locked)) if locked else ():
            if has_rows:
                wanted.append(flow)
            elif is_due:
                due[flow] = None
    return list(due), bool(busy)


def worklist(limit: int) -> Verb[list[int]]:
    """Flows with ends that are not folded."""
    rows = yield from read("worklist", limit=limit)
    return [flow for (flow,) in rows]


def due_flows(after: int, limit: int) -> Verb[list[int]]:
    """Flows with something to act upon, by id, beyond ``after``."""
    rows = yield from read("due_flows", after=after, limit=limit)
    return [flow for (flow,) in rows]


def _fold(flows: Sequence[int]) -> Verb[tuple[list[int], list[int]]]:
    """One transaction. Returns the flows whose lock it had, and those whose rows others have."""
    rows = [{"flow": flow} for flow in flows]
    try:
        locked, _, _ = yield from together(
            Statement("try_flows", {}, rows),
            Statement("fold_ends", {"limit": ROWS}, rows),
            Statement("count_sources", {}, rows),
        )
    except Conflict:  # another workflow has just got the key of one that opens again
        if len(flows) == 1:
            return [], list(flows)
        # It can be among these. The others must not wait for it.
        half = len(flows) // 2
        first, second = (yield from _fold(flows[:half])), (yield from _fold(flows[half:]))
        return first[0] + second[0], first[1] + second[1]
    ((names, busy),) = locked
    return _ids(names), _ids(busy)


def _ids(names: object) -> list[int]:
    return [int(name) for name in str(names or "").split(",") if name]


def _look(flows: Sequence[int]) -> Verb[list[tuple[int, bool, bool]]]:
    """Whether the worklist has rows of these flows, and whether there is something to act upon."""
    rows = yield from read("look_at_flows", [{"flow": flow} for flow in flows])
    return [(flow, bool(has_rows), bool(due)) for flow, has_rows, due in rows]
