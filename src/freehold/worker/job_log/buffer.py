"""What one attempt has said and nobody has written yet: bounded, from any thread, never in the way.

Whoever writes it down peeks, writes, and then strikes out what was written. Two may do so at
once (the scribe, and a fenced transaction): lines have numbers, so that writing one twice is
harmless, and losing one is impossible.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from freehold.model.job_log import LINE_LIMIT, LINES_LIMIT, REASON_LIMIT, Progress
from freehold.store.types import LeaseKey, LogChunk, NewLogLine
from freehold.worker.execution.outcomes import safe


class JobLog(Protocol):
    """Where a handler's words go."""

    def progress(self, done: Any, total: Any, message: Any) -> None: ...

    def log(self, message: Any) -> None: ...

    def pause_queue(self, seconds: float, reason: str | None) -> None: ...


class QueuePauseRequest(msgspec.Struct, frozen=True):
    """The handler wants its queue to stand still for so long, counted from then."""

    seconds: float
    reason: str | None
    at: float


class LogSnapshot(msgspec.Struct, frozen=True):
    """What was said since the last time, as it is read from a notepad."""

    progress: Progress | None
    lines: tuple[tuple[int, float, str], ...]
    rest: QueuePauseRequest | None = None

    @property
    def has_words(self) -> bool:
        return self.progress is not None or bool(self.lines)

    def noted(self, lease: LeaseKey, now: float) -> LogChunk:
        lines = tuple(
            NewLogLine(number, text, max(0.0, now - at)) for number, at, text in self.lines
        )
        return LogChunk(lease, self.progress, lines)


class JobLogBuffer:
    """One attempt's words. ``on_news`` is called, from any thread, when there is something new."""

    def __init__(self, attempt: int, now: Callable[[], float], on_news: Callable[[], None]) -> None:
        self._attempt = attempt
        self._now = now
        self._on_news = on_news
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._rest: QueuePauseRequest | None = None
        self._lines: list[tuple[int, float, str]] = []
        self._count = 0
        self._left_out = 0

    def progress(self, done: Any, total: Any = None, message: Any = None) -> None:
        """Only the latest counts; what is no number is not taken."""
        share = _number(done)
        if share is None:
            return
        text = None if message is None else _text(message)
        self._put(Progress(share, _number(total), text, self._attempt), None)

    def log(self, message: Any) -> None:
        self._put(None, _text(message))

    def pause_queue(self, seconds: float, reason: str | None) -> None:
        """Only the latest counts."""
        text = None if reason is None else _text(reason, REASON_LIMIT)
        with self._lock:
            self._rest = QueuePauseRequest(seconds, text, self._now())
        self._on_news()

    @property
    def wants_rest(self) -> bool:
        return self._rest is not None

    def leave_out(self, count: int) -> None:
        """So many lines were said that are not kept."""
        with self._lock:
            self._left_out += count

    def _put(self, progress: Progress | None, line: str | None) -> None:
        with self._lock:
            is_news = self._progress is None and not self._lines
            if progress is not None:
                self._progress = progress
            elif line is not None and self._count < LINES_LIMIT:
                self._add(line)
            else:
                self._left_out += 1
                return
        if is_news:
            self._on_news()

    def _add(self, line: str) -> None:
        self._count += 1
        self._lines.append((self._count, self._now(), line))

    def left_out(self) -> int:
        """How many lines were not kept since this was last asked."""
        with self._lock:
            count, self._left_out = self._left_out, 0
            return count

    def close(self) -> None:
        """The attempt ends: a last line says how many were left out."""
        count = self.left_out()
        if count:
            with self._lock:
                self._add(f"… and {count} more that were left out: {LINES_LIMIT} lines are kept")

    def peek(self) -> LogSnapshot | None:
        """All that is not struck out."""
        with self._lock:
            said = LogSnapshot(self._progress, tuple(self._lines), self._rest)
        return said if said.has_words or said.rest is not None else None

    def strike(self, said: LogSnapshot) -> None:
        """This was written, or will never be. A rest is struck out by whoever saw to it."""
        last = said.lines[-1][0] if said.lines else 0
        with self._lock:
            if self._progress is said.progress:
                self._progress = None
            self._lines = [line for line in self._lines if line[0] > last]
            has_more = self._progress is not None or bool(self._lines)
        if has_more:
            self._on_news()

    def strike_rest(self, rest: QueuePauseRequest | None) -> None:
        with self._lock:
            if self._rest is rest:
                self._rest = None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any, limit: int = LINE_LIMIT) -> str:
    """Bounded before it is looked at: a handler may log anything."""
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception as error:
        text = f"(a {type(value).__name__} that cannot be shown: {type(error).__name__})"
    return safe(text[: limit + 1], limit)
