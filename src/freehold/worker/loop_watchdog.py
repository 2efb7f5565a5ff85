"""Finds handlers that block the event loop.

Such a handler loses no lease, but it delays every other job of the worker. The renewal thread
sees which handler runs while the loop stands still; the loop logs it when it runs again.
"""

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
    """Ticks on the worker's loop, and is watched from the renewal thread."""

    def __init__(
        self,
        attempts: Mapping[asyncio.Task[Any], HeldLease],
        telemetry: Telemetry,
        now: Callable[[], float],
    ) -> None:
        self._attempts = attempts
        self._telemetry = telemetry
        self._now = now
        self._worker_loop: asyncio.AbstractEventLoop | None = None
        self._ticked_at = now()
        self._suspect: HeldLease | None = None

    async def tick(self) -> None:
        """On the worker's loop."""
        self._worker_loop = asyncio.get_running_loop()
        while True:
            self._ticked_at = self._now()
            await asyncio.sleep(_TICK_SECONDS)
            blocked = self._now() - self._ticked_at - _TICK_SECONDS
            if blocked >= BLOCK_SECONDS:
                self._log_block(blocked)
            self._suspect = None

    async def watch(self) -> None:
        """On the renewer's loop. The task that runs while a tick is missing blocks the loop."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            late = self._now() - self._ticked_at > BLOCK_SECONDS + _TICK_SECONDS
            if late and self._worker_loop is not None and self._suspect is None:
                task = asyncio.current_task(self._worker_loop)
                with contextlib.suppress(KeyError):  # the attempt may end at this moment
                    self._suspect = self._attempts.get(task) if task is not None else None

    def _log_block(self, seconds: float) -> None:
        self._telemetry.count("loop_blocks")
        suspect = self._suspect
        if suspect is None:
            log.warning(
                "the event loop stood still for %.1f s and no handler was running; was the "
                "process suspended?",
                seconds,
            )
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
