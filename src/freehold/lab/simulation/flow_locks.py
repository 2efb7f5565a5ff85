"""The locks of flows, which the embedded store does not need because its writers take turns.

On PostgreSQL a fold holds the lock of its flows from its first statement to its commit. Another
fold that starts meanwhile does not get it, and leaves its rows to the holder. Here a fold that was
executed holds the lock for some time more, so that simulated folds meet in the same way.
"""

from __future__ import annotations

from msgspec.structs import replace

from freehold.store.statements import StatementGroup

TRY_FLOWS = "try_flows"


class FlowLocks:
    """Until when each flow is locked, in microseconds."""

    def __init__(self) -> None:
        self._until: dict[int, int] = {}

    def without_locked(self, group: StatementGroup, now: int) -> StatementGroup:
        """The fold of the flows that are free."""
        free = [row for row in group.statements[0].rows or () if self._is_free(row["flow"], now)]
        statements = tuple(replace(statement, rows=free) for statement in group.statements)
        return replace(group, statements=statements)

    def _is_free(self, flow: int, now: int) -> bool:
        return self._until.get(flow, 0) <= now

    def lock(self, group: StatementGroup, until: int) -> None:
        for row in group.statements[0].rows or ():
            self._until[row["flow"]] = until


def is_fold(group: StatementGroup) -> bool:
    return group.statements[0].name == TRY_FLOWS
