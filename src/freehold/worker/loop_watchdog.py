"""Finds handlers that block the event loop: seen from another thread while it happens, told
when it is over. They lose no lease, but everybody else's latency."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from freehold.telemetry import Telemetry, fields, log
from freehold.worker.held_leases import HeldLease

BLOCK_SECONDS = 1.0
_TICK_SECONDS = 0.25


class LoopWatchdog:
    """Beats on the worker's loop; looked at from the keeper's."""

    def __init__(
        self,
        attempts: Mapping[asyncio.Task[Any], HeldLease],
        telemetry: Telemetry,
        now: Callable[[], float],
    ) -> None:
        self._attempts = attempts
        self._telemetry = telemetry
        self._now = now
        self._home: asyncio.AbstractEventLoop | None = None
        self._beat = now()
        self._suspect: HeldLease | None = None

    async def beat(self) -> None:
        """On the worker's loop."""
        self._home = asyncio.get_running_loop()
        while True:
            self._beat = self._now()
            await asyncio.sleep(_TICK_SECONDS)
            blocked = self._now() - self._beat - _TICK_SECONDS
            if blocked >= BLOCK_SECONDS:
                self._tell(blocked)
            self._suspect = None

    async def look(self) -> None:
        """On the keeper's loop: whoever runs now, while the beat is missing, is it."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            late = self._now() - self._beat > BLOCK_SECONDS + _TICK_SECONDS
            if late and self._home is not None and self._suspect is None:
                task = asyncio.current_task(self._home)
                with contextlib.suppress(KeyError):  # it may end at this moment
                    self._suspect = self._attempts.get(task) if task is not None else None

    def _tell(self, seconds: float) -> None:
        self._telemetry.count("loop_blocks")
        suspect = self._suspect
        if suspect is None:
            log.warning("the event loop was blocked for %.1f s by nobody known", seconds)
            return
        attempt = suspect.attempt
        log.warning(
            "task %s blocked the event loop for %.1f s (job %d): await in it, or make it a plain "
            "def, which runs in a thread",
            attempt.task,
            seconds,
            attempt.job_id,
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )
