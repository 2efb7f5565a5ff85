"""Finds handlers that block the event loop.

Such a handler loses no lease, but it delays every other job of the worker. The renewal thread
sees which handler runs while the loop stands still; the loop logs it when it runs again. If the
renewal thread stood still as well, no handler on the loop is to blame: the process was suspended,
or a thread held the interpreter's lock.
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
_TASKS_SHOWN = 5


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
        self._watched_at = now()
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
            began = self._now()
            await asyncio.sleep(_TICK_SECONDS)
            if self._now() - began - _TICK_SECONDS >= BLOCK_SECONDS:
                continue  # this thread stood still too
            self._watched_at = self._now()
            late = self._now() - self._ticked_at > BLOCK_SECONDS + _TICK_SECONDS
            if late and self._worker_loop is not None and self._suspect is None:
                task = asyncio.current_task(self._worker_loop)
                with contextlib.suppress(KeyError):  # the attempt may end at this moment
                    self._suspect = self._attempts.get(task) if task is not None else None

    def _log_block(self, seconds: float) -> None:
        self._telemetry.count("loop_blocks")
        if self._watched_at < self._ticked_at + BLOCK_SECONDS:
            tasks = sorted({lease.attempt.task for lease in self._attempts.values()})
            log.warning(
                "the whole process stood still for %.1f s: it was suspended, or a thread held the "
                "interpreter's lock (GIL), as some C extensions do; running: %s",
                seconds,
                ", ".join(tasks[:_TASKS_SHOWN]) or "no task",
            )
        elif self._suspect is None:
            log.warning(
                "the event loop stood still for %.1f s, but not in the code of a handler", seconds
            )
        else:
            self._log_suspect(self._suspect, seconds)

    def _log_suspect(self, suspect: HeldLease, seconds: float) -> None:
        attempt = suspect.attempt
        remedy = "its result takes long to encode: return less"
        if suspect.is_coroutine:
            remedy = "await in it, or make it a plain def, which runs in a thread"
        log.warning(
            "task %s blocked the event loop for %.1f s (job %d): %s",
            attempt.task,
            seconds,
            attempt.job_id,
            remedy,
            extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
        )
