"""Writes down what handlers say, for all attempts together, at most twice a second.

An attempt's last words are written before its end is, and at once: after its end its lease is
gone, and nobody takes its words any more.
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
from freehold.worker.held_leases import HeldLease, StopReason
from freehold.worker.job_log.buffer import JobLogBuffer, LogSnapshot, QueuePauseRequest

FLUSH_SECONDS = 0.5
#: How long the end of an attempt waits for its last words; its end matters more.
FLUSH_LIMIT_SECONDS = 5.0
GROUP_LIMIT = 50


class LogStore(Protocol):
    async def note(self, owner: str, noted: Sequence[LogChunk]) -> tuple[int, ...]: ...

    async def now(self) -> datetime: ...

    async def doors(self, queue: str) -> list[QueueRules]: ...

    async def pause_queue(
        self, name: str, by: str, reason: str | None, until: datetime | None
    ) -> None: ...


class JobLogWriter:
    """One per worker, on its loop."""

    def __init__(self, store: LogStore, owner: str, telemetry: Telemetry) -> None:
        self._store = store
        self._owner = owner
        self._telemetry = telemetry
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[HeldLease, None] = {}
        self._last_words: dict[HeldLease, asyncio.Future[None]] = {}
        self._something = asyncio.Event()
        self._urgent = asyncio.Event()

    def notepad(self, held: HeldLease) -> JobLogBuffer:
        """For an attempt that is about to start."""

        def on_news() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody writes any more
                self._loop.call_soon_threadsafe(self._hear, held)

        return JobLogBuffer(held.attempt.number, self._loop.time, on_news)

    def _hear(self, held: HeldLease) -> None:
        self._waiting[held] = None
        self._something.set()
        if held.notes is not None and held.notes.wants_rest:
            self._urgent.set()

    async def run(self) -> None:
        while True:
            await self._something.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._urgent.wait()
            self._something.clear()
            self._urgent.clear()
            if not await self.flush():
                await asyncio.sleep(FLUSH_SECONDS)
                self._something.set()

    async def last_words(self, held: HeldLease, notes: JobLogBuffer) -> None:
        """Before an attempt's end is written. What cannot be written in time is given up."""
        if held.was_stopped_by(StopReason.LEASE_LOST):
            return
        if held.finished and not notes.wants_rest:
            return
        notes.close()
        if notes.peek() is None:
            return
        self._last_words[held] = written = self._loop.create_future()
        self._hear(held)
        self._urgent.set()
        try:
            async with asyncio.timeout(FLUSH_LIMIT_SECONDS):
                await written
        except TimeoutError:
            attempt = held.attempt
            log.warning(
                "job %d: its last words could not be written and are lost",
                attempt.job_id,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )
        finally:
            self._last_words.pop(held, None)
            self._waiting.pop(held, None)

    async def flush(self) -> bool:
        """Write what was said until now. Answers whether the store took it."""
        waiting = list(self._waiting)
        for start in range(0, len(waiting), GROUP_LIMIT):
            group = waiting[start : start + GROUP_LIMIT]
            said = {held: words for held in group if (words := _words(held)) is not None}
            try:
                unclear = await self._write(said)
            except StoreError as error:
                self._telemetry.count("store_errors", label="scribe")
                log.warning("writing down what handlers said failed, trying again: %s", error)
                return False
            for held in group:
                self._settle(held, said.get(held), keeps_rest=held in unclear)
        return True

    async def _write(self, group: dict[HeldLease, LogSnapshot]) -> set[HeldLease]:
        """Answers those whose lease is gone, by robbery or by their own transaction, which may
        not have been told of its end yet: whether they may pause their queue is asked at their
        end."""
        now = self._loop.time()
        noted = [said.noted(held.key, now) for held, said in group.items()]
        lost = set(await self._store.note(self._owner, noted))
        gone = {held for held in group if held.attempt.job_id in lost and not held.finished}
        unclear = {held for held in gone if group[held].rest and held not in self._last_words}
        for held, said in group.items():
            if said.rest is not None and held not in gone:
                await self._pause(held, said.rest)
        stale = [held for held in gone if held not in unclear or group[held].has_words]
        self._telemetry.count("stale_writes", len(stale), label="note")
        return unclear

    async def _pause(self, held: HeldLease, rest: QueuePauseRequest) -> None:
        """Unless somebody has paused the queue for longer."""
        queue, by = held.attempt.queue, f"job {held.attempt.job_id}"
        left = timedelta(seconds=max(0.0, rest.seconds - (self._loop.time() - rest.at)))
        until = await self._store.now() + left
        for door in await self._store.doors(queue):
            known = door.pause
            if door.name == queue and known and (known.until is None or known.until >= until):
                return
        await self._store.pause_queue(queue, by, rest.reason, until)
        log.warning(
            "queue %s is paused for %.1f s by %s: %s",
            queue,
            left.total_seconds(),
            by,
            rest.reason or "no reason given",
        )

    def _settle(self, held: HeldLease, said: LogSnapshot | None, *, keeps_rest: bool) -> None:
        self._waiting.pop(held, None)
        if said is not None and held.notes is not None:
            held.notes.strike(said)
            if not keeps_rest:
                held.notes.strike_rest(said.rest)
        written = self._last_words.get(held)
        if written is not None and not written.done():
            written.set_result(None)


def _words(held: HeldLease) -> LogSnapshot | None:
    return None if held.notes is None else held.notes.peek()
