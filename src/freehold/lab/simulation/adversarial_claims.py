"""The worst moment for a late word about a job: when somebody else has just claimed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from freehold.store.statements import Rows, StatementGroup

#: The statements that claim.
CLAIMS = frozenset({"claim", "claim_plain"})


class AdversarialClaims:
    """Knows of every claim, and wakes who waits for one."""

    def __init__(self) -> None:
        self._waiting: list[tuple[frozenset[int], asyncio.Event]] = []

    def seen(self, batch: StatementGroup, answers: list[Rows]) -> None:
        if not self._waiting:
            return
        for statement, rows in zip(batch.statements, answers, strict=True):
            if statement.name in CLAIMS:
                claimed = {row[0] for row in rows}
                for ids, happened in self._waiting:
                    if ids & claimed:
                        happened.set()

    async def of(self, batch: StatementGroup, seconds: float) -> None:
        """Until one of the jobs that the batch is about is claimed; no longer than so long."""
        waiting = frozenset(_jobs(batch)), asyncio.Event()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(seconds):
                await waiting[1].wait()
        except TimeoutError:
            pass
        finally:
            self._waiting.remove(waiting)


def _jobs(batch: StatementGroup) -> Iterator[int]:
    for statement in batch.statements:
        yield from (row["id"] for row in statement.rows or () if "id" in row)
