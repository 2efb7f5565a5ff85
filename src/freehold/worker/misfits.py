"""Misfits: parked jobs whose arguments did not fit the code of the worker that claimed them.

In a rolling deploy, producers and workers of two versions run side by side. A job that an older
worker cannot decode waits, parked, for a worker that can; the wait has an end, see `_misfit` in
`model/outcome.py`. A worker makes a misfit ready only if its own code fits, or if the wait is over:
then the next attempt fails the job. So older workers do not pass a misfit on to each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from freehold.store.types import Misfit

BATCH = 200
#: Misfits that this worker cannot run are read again after this time, for their wait may be over.
_AGAIN_SECONDS = 10.0


class MisfitStore(Protocol):
    async def misfits(self, tasks: Sequence[str], after: int, limit: int) -> list[Misfit]: ...

    async def unpark_misfits(self, ids: Sequence[int]) -> int: ...


class MisfitCheck:
    """Reads the misfits of known tasks in batches, and makes those ready that this code fits."""

    def __init__(self, tasks: Sequence[str], fits: Callable[[str, str], bool]) -> None:
        self._tasks = tasks
        self._fits = fits
        self._after = 0
        self._from_start_at = 0.0
        self._is_at_end = True
        #: Whether the last batch ended the list, and contained no job that this worker could run.
        self.is_done = False

    async def run_once(self, store: MisfitStore, room: int) -> int:
        """One batch. Returns how many jobs became ready, at most ``room``."""
        now = asyncio.get_running_loop().time()
        if self._is_at_end and now >= self._from_start_at:
            self._after, self._from_start_at = 0, now + _AGAIN_SECONDS
        batch = await store.misfits(self._tasks, self._after, BATCH)
        chosen = [
            each for each in batch if each.misfit_time_is_over or self._fits(each.task, each.args)
        ]
        taken = [each.job_id for each in chosen[:room]]
        self._is_at_end = len(batch) < BATCH and len(taken) == len(chosen)
        self.is_done = self._is_at_end and not chosen
        if len(taken) == len(chosen):
            self._after = batch[-1].job_id if batch else self._after
        elif taken:
            self._after = taken[-1]
        return await store.unpark_misfits(taken) if taken else 0
