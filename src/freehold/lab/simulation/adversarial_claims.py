"""The worst time for a late write about a job: just after another worker has claimed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from freehold.store.statements import Rows, StatementGroup

#: The statements that claim, and those that store new jobs.
CLAIMS = frozenset({"claim", "claim_plain"})
ENQUEUES = frozenset(
    {"enqueue", "enqueue_keyed", "enqueue_one", "enqueue_plain", "enqueue_with_notify_age"}
)
#: Those that store a job, or replace what a waiting job carries.
ENQUEUES_WAITING = frozenset({"enqueue_waiting", "enqueue_replacing"})
#: Their rows begin with the id of a job: members and callbacks of flows.
MEMBERS = frozenset({"add_members", "release_callback", "open_group", "wake_gather"})
#: Its rows are the name of a schedule and the id of a job.
FIRE = "fire"


class AdversarialClaims:
    """Observes every claim and wakes the late writes that wait for one."""

    def __init__(self) -> None:
        self._waiting: list[tuple[frozenset[int], asyncio.Event]] = []

    def observe(self, group: StatementGroup, results: list[Rows]) -> None:
        if not self._waiting:
            return
        for statement, rows in zip(group.statements, results, strict=True):
            if statement.name in CLAIMS:
                claimed = {row[0] for row in rows}
                for ids, claimed_again in self._waiting:
                    if ids & claimed:
                        claimed_again.set()

    async def wait_for(self, group: StatementGroup, seconds: float) -> None:
        """Waits until a job of the group is claimed, but at most this many seconds."""
        waiting = frozenset(_jobs(group)), asyncio.Event()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting[1].wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.remove(waiting)


def _jobs(group: StatementGroup) -> Iterator[int]:
    for statement in group.statements:
        yield from (row["id"] for row in statement.rows or () if "id" in row)
