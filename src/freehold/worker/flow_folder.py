"""Folds the ends of members of flows, after the finisher has written them, and acts on their flows.

One round at a time: ends that are written meanwhile are folded together by the next one. A round
that has released nothing is followed by a pause while the worker holds leases, so that a stream of
ends is counted by few large folds: each costs two round trips, however many ends it counts. After
an error the sweeps go on, which find what is not folded and not acted upon.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence, Sized
from typing import Protocol

from freehold.errors import StoreError
from freehold.rare_warning import RareWarning
from freehold.store.types import Advanced
from freehold.telemetry import Telemetry, log
from freehold.worker.wakeups import Wakeups


class AdvanceStore(Protocol):
    async def advance_flows(self, flows: Sequence[int]) -> Advanced: ...


#: The longest pause between two folds.
PAUSE_SECONDS = 0.02


class FlowFolder:
    """One per worker. ``leases``: those that it holds."""

    def __init__(
        self, store: AdvanceStore, telemetry: Telemetry, wakeups: Wakeups, leases: Sized
    ) -> None:
        self._store = store
        self._telemetry = telemetry
        self._wakeups = wakeups
        self._leases = leases
        self._flows: dict[int, None] = {}
        self._not_empty = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._not_before = 0.0
        self._at_once = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        return self._empty.is_set()

    def add(self, flows: Iterable[int]) -> None:
        """Ends of members of these flows were written, and their leases are held no longer."""
        self._flows.update(dict.fromkeys(flows))
        self._not_empty.set()
        self._empty.clear()
        if not len(self._leases):
            self._at_once.set()  # no other end follows soon

    async def flushed(self) -> None:
        """Waits until all that was added is folded, or left to the sweeps. Without a pause."""
        self._at_once.set()
        await self._empty.wait()

    async def run(self) -> None:
        while True:
            await self._not_empty.wait()
            await self._pause()
            self._not_empty.clear()
            flows, self._flows = list(self._flows), {}
            try:
                await self._advance(flows)
            finally:
                if not self._flows:
                    self._empty.set()

    async def _pause(self) -> None:
        seconds = self._not_before - asyncio.get_running_loop().time()
        if seconds > 0 and not self._at_once.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._at_once.wait()
        self._at_once.clear()

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
        else:
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
        if advanced.is_left:
            self._wakeups.sweep.set()


#: One that stands still is found by every sweep.
_PROBLEM = RareWarning("the store refuses what a flow needs: %s")


def log_problems(advanced: Advanced) -> None:
    for problem in advanced.problems:
        _PROBLEM.log(problem, key=problem)
