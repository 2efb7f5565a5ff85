"""Writes down what handlers say, for all attempts together, at most twice a second.

An attempt's last words are written before its end is, and at once: after its end its lease is
gone, and nobody takes its words any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

from leasehold.errors import StoreError
from leasehold.store.contract import Noted
from leasehold.telemetry import Telemetry, fields, log
from leasehold.worker.hand import Held, StopReason
from leasehold.worker.notepad import Notepad, Said

FLUSH_SECONDS = 0.5
#: How long the end of an attempt waits for its last words; its end matters more.
LAST_WORDS_SECONDS = 5.0
GROUP_LIMIT = 50


class NoteStore(Protocol):
    async def note(self, owner: str, noted: Sequence[Noted]) -> tuple[int, ...]: ...


class Scribe:
    """One per worker, on its loop."""

    def __init__(self, store: NoteStore, owner: str, telemetry: Telemetry) -> None:
        self._store = store
        self._owner = owner
        self._telemetry = telemetry
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Held, None] = {}
        self._last_words: dict[Held, asyncio.Future[None]] = {}
        self._something = asyncio.Event()
        self._urgent = asyncio.Event()

    def notepad(self, held: Held) -> Notepad:
        """For an attempt that is about to start."""

        def on_news() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody writes any more
                self._loop.call_soon_threadsafe(self._hear, held)

        return Notepad(held.attempt.number, self._loop.time, on_news)

    def _hear(self, held: Held) -> None:
        self._waiting[held] = None
        self._something.set()

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

    async def last_words(self, held: Held) -> None:
        """Before an attempt's end is written. What cannot be written in time is given up."""
        if held.notes is None or held.finished or held.was_stopped_by(StopReason.LEASE_LOST):
            return
        held.notes.close()
        if held.notes.peek() is None:
            return
        self._last_words[held] = written = self._loop.create_future()
        self._hear(held)
        self._urgent.set()
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await written
        except TimeoutError:
            attempt = held.attempt
            log.warning(
                "job %d: its last words could not be written and are lost", attempt.job_id,
                extra=fields(job=attempt.job_id, task=attempt.task, attempt=attempt.number),
            )  # fmt: skip
        finally:
            self._last_words.pop(held, None)
            self._waiting.pop(held, None)

    async def flush(self) -> bool:
        """Write what was said until now. Answers whether the store took it."""
        waiting = list(self._waiting)
        for start in range(0, len(waiting), GROUP_LIMIT):
            group = waiting[start : start + GROUP_LIMIT]
            said = {held: words for held in group if (words := _words(held)) is not None}
            if not await self._write(said):
                return False
            for held in group:
                self._settle(held, said.get(held))
        return True

    async def _write(self, group: dict[Held, Said]) -> bool:
        now = self._loop.time()
        noted = [said.noted(held.key, now) for held, said in group.items()]
        try:
            lost = await self._store.note(self._owner, noted)
        except StoreError as error:
            self._telemetry.count("store_errors", label="scribe")
            log.warning("writing down what handlers said failed, trying again: %s", error)
            return False
        finished = {held.attempt.job_id for held in group if held.finished}
        self._telemetry.count("stale_writes", len(set(lost) - finished), label="note")
        return True

    def _settle(self, held: Held, said: Said | None) -> None:
        self._waiting.pop(held, None)
        if said is not None and held.notes is not None:
            held.notes.strike(said)
        written = self._last_words.get(held)
        if written is not None and not written.done():
            written.set_result(None)


def _words(held: Held) -> Said | None:
    return None if held.notes is None else held.notes.peek()
