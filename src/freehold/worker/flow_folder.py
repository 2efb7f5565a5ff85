"""Folds the ends of members of flows, after the finisher has written them, and acts on their flows.

One round at a time: ends that are written meanwhile are folded together by the next one. After an
error the sweeps go on, which find what is not folded and not acted upon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from freehold.errors import StoreError
from freehold.rare_warning import RareWarning
from freehold.store.types import Advanced
from freehold.telemetry import Telemetry, log
from freehold.worker.wakeups import Wakeups


class AdvanceStore(Protocol):
    async def advance_flows(self, flows: Sequence[int]) -> Advanced: ...


class FlowFolder:
    """One per worker."""

    def __init__(self, store: AdvanceStore, telemetry: Telemetry, wakeups: Wakeups) -> None:
        self._store = store
        self._telemetry = telemetry
        self._wakeups = wakeups
        self._flows: dict[int, None] = {}
        self._not_empty = asyncio.Event()
        self._is_folding = False

    @property
    def is_idle(self) -> bool:
        return not self._flows and not self._is_folding

    def add(self, flows: Iterable[int]) -> None:
        """Ends of members of these flows were written."""
        self._flows.update(dict.fromkeys(flows))
        self._not_empty.set()

    async def run(self) -> None:
        while True:
            await self._not_empty.wait()
            self._not_empty.clear()
            flows, self._flows = list(self._flows), {}
            self._is_folding = True
            try:
                await self._advance(flows)
            finally:
                self._is_folding = False

    async def _advance(self, flows: list[int]) -> None:
        try:
            advanced = await self._store.advance_flows(flows)
        except StoreError as error:
            self._telemetry.count("store_errors", label="flows")
            log.warning("ends of %d flows are left to the next sweep: %s", len(flows), error)
            self._wakeups.has_swept = False
            self._wakeups.sweep.set()
            return
        log_problems(advanced)
        if advanced.jobs:
            self._wakeups.jobs_ready()
        if advanced.is_left:
            self._wakeups.sweep.set()


#: One that stands still is found by every sweep.
_PROBLEM = RareWarning("the store refuses what a flow needs: %s")


def log_problems(advanced: Advanced) -> None:
    for problem in advanced.problems:
        _PROBLEM.log(problem, key=problem)
