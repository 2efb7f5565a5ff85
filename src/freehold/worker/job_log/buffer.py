"""The unwritten log lines and progress of one attempt: bounded, thread-safe, never blocking.

A writer peeks, writes, and then discards what it wrote. Two may do so at once (the job log writer
and a fenced transaction): lines are numbered, so that writing one twice is harmless, and a line
is discarded only after it was written.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from freehold.model.job_log import LINE_LIMIT, LINES_LIMIT, Progress
from freehold.model.names import REASON_LIMIT
from freehold.store.types import LeaseKey, LogChunk, NewLogLine
from freehold.worker.execution.outcomes import safe


class JobLog(Protocol):
    """Receives the log lines and the progress of a handler."""

    def progress(self, done: Any, total: Any, message: Any) -> None: ...

    def log(self, message: Any) -> None: ...

    def pause_queue(self, seconds: float, reason: str | None) -> None: ...


class QueuePauseRequest(msgspec.Struct, frozen=True):
    """The handler asks to pause its queue for ``seconds`` from ``requested_at`` on."""

    seconds: float
    reason: str | None
    requested_at: float


class LogSnapshot(msgspec.Struct, frozen=True):
    """The content of a buffer at one moment."""

    progress: Progress | None
    lines: tuple[tuple[int, float, str], ...]
    queue_pause: QueuePauseRequest | None = None

    @property
    def has_entries(self) -> bool:
        return self.progress is not None or bool(self.lines)

    def chunk(self, lease: LeaseKey, now: float) -> LogChunk:
        lines = tuple(
            NewLogLine(number, text, max(0.0, now - at)) for number, at, text in self.lines
        )
        return LogChunk(lease, self.progress, lines)


class JobLogBuffer:
    """The log of one attempt. ``on_change`` is called in any thread when it has new content."""

    def __init__(
        self, attempt: int, now: Callable[[], float], on_change: Callable[[], None]
    ) -> None:
        self._attempt = attempt
        self._now = now
        self._on_change = on_change
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._queue_pause: QueuePauseRequest | None = None
        self._lines: list[tuple[int, float, str]] = []
        self._count = 0
        self._dropped = 0

    def progress(self, done: Any, total: Any = None, message: Any = None) -> None:
        """Only the latest is kept. A value that is not a number is ignored."""
        share = _number(done)
        if share is None:
            return
        text = None if message is None else _text(message)
        self._put(Progress(share, _number(total), text, self._attempt), None)

    def log(self, message: Any) -> None:
        self._put(None, _text(message))

    def pause_queue(self, seconds: float, reason: str | None) -> None:
        """Only the latest request is kept."""
        text = None if reason is None else _text(reason, REASON_LIMIT)
        with self._lock:
            self._queue_pause = QueuePauseRequest(seconds, text, self._now())
        self._on_change()

    @property
    def has_queue_pause(self) -> bool:
        return self._queue_pause is not None

    def add_dropped(self, count: int) -> None:
        """So many more lines were dropped elsewhere."""
        with self._lock:
            self._dropped += count

    def _put(self, progress: Progress | None, line: str | None) -> None:
        with self._lock:
            was_empty = self._progress is None and not self._lines
            if progress is not None:
                self._progress = progress
            elif line is not None and self._count < LINES_LIMIT:
                self._add(line)
            else:
                self._dropped += 1
                return
        if was_empty:
            self._on_change()

    def _add(self, line: str) -> None:
        self._count += 1
        self._lines.append((self._count, self._now(), line))

    def take_dropped(self) -> int:
        """Returns the number of dropped lines since the last call."""
        with self._lock:
            count, self._dropped = self._dropped, 0
            return count

    def close(self) -> None:
        """At the end of the attempt: adds a last line with the number of dropped lines."""
        count = self.take_dropped()
        if count:
            with self._lock:
                self._add(f"… and {count} more, dropped: the limit is {LINES_LIMIT} lines")

    def peek(self) -> LogSnapshot | None:
        """Everything that was not discarded; None if there is nothing."""
        with self._lock:
            snapshot = LogSnapshot(self._progress, tuple(self._lines), self._queue_pause)
        return snapshot if snapshot.has_entries or snapshot.queue_pause is not None else None

    def discard(self, snapshot: LogSnapshot) -> None:
        """Removes what was written or never will be. The queue pause is discarded separately."""
        last = snapshot.lines[-1][0] if snapshot.lines else 0
        with self._lock:
            if self._progress is snapshot.progress:
                self._progress = None
            self._lines = [line for line in self._lines if line[0] > last]
            has_more = self._progress is not None or bool(self._lines)
        if has_more:
            self._on_change()

    def discard_queue_pause(self, queue_pause: QueuePauseRequest | None) -> None:
        with self._lock:
            if self._queue_pause is queue_pause:
                self._queue_pause = None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any, limit: int = LINE_LIMIT) -> str:
    """Shortened before it is cleaned: a handler may log a text of any size."""
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception as error:
        text = f"<str() of a {type(value).__name__} raised {type(error).__name__}>"
    return safe(text[: limit + 1], limit)
