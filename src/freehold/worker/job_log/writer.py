"""Writes the log lines and progress of all attempts together, at most twice a second.

At the end of an attempt its log is written at once and before its outcome: afterwards its lease
is gone, and the store refuses its log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.explain import QueueRules
from freehold.store.types import LogChunk
from freehold.telemetry import Telemetry, fields, log
from freehold.worker.event_loop import uninterrupted
from freehold.worker.held_leases import HeldLease, Phase, StopReason
from freehold.worker.job_log.buffer import JobLogBuffer, LogSnapshot, QueuePauseRequest

FLUSH_SECONDS = 0.5
#: How long the outcome of an attempt waits for its log. The outcome matters more.
FLUSH_LIMIT_SECONDS = 5.0
GROUP_LIMIT = 50


class LogStore(Protocol):
    async def append_log(self, owner: str, chunks: Sequence[LogChunk]) -> tuple[int, ...]: ...

    async def now(self) -> datetime: ...

    async def queue_rules(self, queue: str) -> list[QueueRules]: ...

    async def pause_queue(
        self, name: str, by: str, reason: str | None, until: datetime | None
    ) -> None: ...


class JobLogWriter:
    """One per worker, on its loop."""

    def __init__(self, store: LogStore, owner: str, telemetry: Telemetry) -> None:
        self._store = store
        self._owner = owner
        self._telemetry = telemetry
        self._store_part = telemetry.store_health.part("job log writer")
        self._error_wait = FLUSH_SECONDS
        self._loop = asyncio.get_running_loop()
        self._unwritten: dict[HeldLease, None] = {}
        self._final_flushes: dict[HeldLease, asyncio.Future[None]] = {}
        self._has_changes = asyncio.Event()
        self._urgent = asyncio.Event()

    def new_buffer(self, lease: HeldLease) -> JobLogBuffer:
        """For an attempt that is about to start."""

        def on_change() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the writer with it
                self._loop.call_soon_threadsafe(self._on_change, lease)

        return JobLogBuffer(lease.attempt.number, self._loop.time, on_change)

    def _on_change(self, lease: HeldLease) -> None:
        self._unwritten[lease] = None
        self._has_changes.set()
        if lease.log_buffer is not None and lease.log_buffer.has_queue_pause:
            self._urgent.set()

    async def run(self) -> None:
        try:
            await self._run_rounds()
        finally:
            self._store_part.leave()

    async def _run_rounds(self) -> None:
        while True:
            await self._has_changes.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._urgent.wait()
            self._has_changes.clear()
            self._urgent.clear()
            if not await self.flush():
                await self._store_part.wait(self._error_wait)
                self._has_changes.set()

    async def flush_attempt(self, lease: HeldLease, buffer: JobLogBuffer) -> None:
        """Writes the log of an attempt before its outcome, or gives it up after some seconds.

        Code that the handler has left behind may still cancel its task: that has no effect here.
        """
        if lease.was_stopped_by(StopReason.LEASE_LOST):
            return
        if lease.phase is Phase.FINISHED and not buffer.has_queue_pause:
            return
        buffer.close()
        if buffer.peek() is None:
            return
        with contextlib.suppress(asyncio.CancelledError):
            await uninterrupted(self._flush_last(lease))

    async def _flush_last(self, lease: HeldLease) -> None:
        self._final_flushes[lease] = written = self._loop.create_future()
        self._on_change(lease)
        self._urgent.set()
        try:
            async with asyncio.timeout(FLUSH_LIMIT_SECONDS):
                await written
        except TimeoutError:
            attempt = lease.attempt
            log.warning(
                "job %d: the last lines of its log could not be written and are lost",
                attempt.job_id,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
        finally:
            self._final_flushes.pop(lease, None)
            self._unwritten.pop(lease, None)

    async def flush(self) -> bool:
        """Writes all buffers. Returns whether the store accepted them."""
        unwritten = list(self._unwritten)
        for start in range(0, len(unwritten), GROUP_LIMIT):
            group = unwritten[start : start + GROUP_LIMIT]
            snapshots = {lease: found for lease in group if (found := _snapshot(lease)) is not None}
            try:
                undecided = await self._write(snapshots)
            except StoreError as error:
                self._telemetry.count("store_errors", label="job_log")
                self._error_wait = self._store_part.failed(
                    error, FLUSH_SECONDS, FLUSH_LIMIT_SECONDS
                )
                return False
            self._store_part.works()
            for lease in group:
                self._written(lease, snapshots.get(lease), keep_pause=lease in undecided)
        self._store_part.leave()
        return True

    async def _write(self, group: dict[HeldLease, LogSnapshot]) -> set[HeldLease]:
        """Returns the attempts with a queue pause to be decided at their end: their lease is lost,
        or their own transaction has finished the job and is not marked finished here yet."""
        now = self._loop.time()
        chunks = [snapshot.chunk(lease.key, now) for lease, snapshot in group.items()]
        lost = set(await self._store.append_log(self._owner, chunks))
        gone = {
            lease
            for lease in group
            if lease.attempt.job_id in lost and lease.phase is not Phase.FINISHED
        }
        undecided = {
            lease for lease in gone if group[lease].queue_pause and lease not in self._final_flushes
        }
        for lease, snapshot in group.items():
            if snapshot.queue_pause is not None and lease not in gone:
                await self._pause_queue(lease, snapshot.queue_pause)
        stale = [lease for lease in gone if lease not in undecided or group[lease].has_entries]
        self._telemetry.count("stale_writes", len(stale), label="append_log")
        return undecided

    async def _pause_queue(self, lease: HeldLease, request: QueuePauseRequest) -> None:
        """Unless the queue is paused for longer already."""
        queue, by = lease.attempt.queue, f"job {lease.attempt.job_id}"
        passed = self._loop.time() - request.requested_at
        left = timedelta(seconds=max(0.0, request.seconds - passed))
        until = await self._store.now() + left
        for rules in await self._store.queue_rules(queue):
            pause = rules.pause
            if rules.name == queue and pause and (pause.until is None or pause.until >= until):
                return
        await self._store.pause_queue(queue, by, request.reason, until)
        log.warning(
            "queue %s is paused for %.1f s by %s: %s",
            queue,
            left.total_seconds(),
            by,
            request.reason or "no reason given",
        )

    def _written(self, lease: HeldLease, snapshot: LogSnapshot | None, *, keep_pause: bool) -> None:
        self._unwritten.pop(lease, None)
        if snapshot is not None and lease.log_buffer is not None:
            lease.log_buffer.discard(snapshot)
            if not keep_pause:
                lease.log_buffer.discard_queue_pause(snapshot.queue_pause)
        written = self._final_flushes.get(lease)
        if written is not None and not written.done():
            written.set_result(None)


def _snapshot(lease: HeldLease) -> LogSnapshot | None:
    return None if lease.log_buffer is None else lease.log_buffer.peek()
