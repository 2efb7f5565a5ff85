"""Sends the log of a handler in a child process to the parent, which writes it.

A thread sends it, because the pipe may be full and the handler must not wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from freehold.decoders import decoder
from freehold.model.outcome import Outcome
from freehold.worker.job_log.buffer import JobLogBuffer, LogSnapshot

#: Of each such interval only the latest progress is sent.
SEND_SECONDS = 0.1


class ChildLog(msgspec.Struct, frozen=True, tag="log"):
    """Log of the running attempt, and the number of dropped lines."""

    snapshot: LogSnapshot | None
    dropped: int = 0


class ChildDone(msgspec.Struct, frozen=True, tag="done"):
    """The attempt has ended."""

    outcome: Outcome


decode_message: Callable[[bytes], ChildLog | ChildDone] = decoder(ChildLog | ChildDone).decode


class ChildLogPipe:
    """One per attempt. The thread starts with the first entry."""

    def __init__(self, attempt: int, send: Callable[[ChildLog], None]) -> None:
        self.buffer = JobLogBuffer(attempt, time.monotonic, self._on_change)
        self._send = send
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _on_change(self) -> None:
        self._changed.set()
        with self._starting:  # a handler may log from several threads at once
            if self._thread is None and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name="freehold-child-log", daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._changed.wait()
            self._changed.clear()
            self._send_snapshot()
            self._closing.wait(SEND_SECONDS)

    def _send_snapshot(self) -> None:
        snapshot = self.buffer.peek()
        if snapshot is not None:
            self._send(ChildLog(snapshot))
            self.buffer.discard(snapshot)
            self.buffer.discard_queue_pause(snapshot.queue_pause)

    def close(self) -> None:
        """Sends what is left. The thread sends nothing afterwards."""
        self._closing.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        dropped = self.buffer.take_dropped()
        self._send_snapshot()
        if dropped:
            self._send(ChildLog(None, dropped))


def append_child_log(child_log: ChildLog, buffer: JobLogBuffer) -> None:
    """In the parent: as if the handler had logged it here."""
    if child_log.snapshot is not None:
        for _number, _at, text in child_log.snapshot.lines:
            buffer.log(text)
        if (progress := child_log.snapshot.progress) is not None:
            buffer.progress(progress.done, progress.total, progress.message)
        if (queue_pause := child_log.snapshot.queue_pause) is not None:
            buffer.pause_queue(queue_pause.seconds, queue_pause.reason)
    buffer.add_dropped(child_log.dropped)
