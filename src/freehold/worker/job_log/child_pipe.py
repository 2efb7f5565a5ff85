"""What a handler in a child process says, on its way to the parent, who writes it down.

A thread of its own sends it: the pipe may be full, and the handler must not wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from freehold.decoders import decoder
from freehold.model.outcome import Outcome
from freehold.worker.job_log.buffer import JobLogBuffer, LogSnapshot

#: Only the latest progress of each such span is sent.
SEND_SECONDS = 0.1


class ChildLog(msgspec.Struct, frozen=True, tag="told"):
    """Words of the running attempt, and how many more were left out."""

    said: LogSnapshot | None
    left_out: int = 0


class ChildDone(msgspec.Struct, frozen=True, tag="over"):
    """The attempt has ended."""

    outcome: Outcome


message_of: Callable[[bytes], ChildLog | ChildDone] = decoder(ChildLog | ChildDone).decode


class ChildLogPipe:
    """One per attempt. The thread starts with the first word."""

    def __init__(self, attempt: int, send: Callable[[ChildLog], None]) -> None:
        self.notepad = JobLogBuffer(attempt, time.monotonic, self._on_news)
        self._send = send
        self._news = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _on_news(self) -> None:
        self._news.set()
        with self._starting:  # threads of one handler may speak at once
            if self._thread is None and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name="freehold-teller", daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        while not self._closing.is_set():
            self._news.wait()
            self._news.clear()
            self._tell()
            self._closing.wait(SEND_SECONDS)

    def _tell(self) -> None:
        said = self.notepad.peek()
        if said is not None:
            self._send(ChildLog(said))
            self.notepad.strike(said)
            self.notepad.strike_rest(said.rest)

    def close(self) -> None:
        """The last words. Nothing is sent by the thread afterwards."""
        self._closing.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join()
        left_out = self.notepad.left_out()
        self._tell()
        if left_out:
            self._send(ChildLog(None, left_out))


def write_down(told: ChildLog, notepad: JobLogBuffer) -> None:
    """In the parent: as if it had been said here."""
    if told.said is not None:
        for _number, _at, text in told.said.lines:
            notepad.log(text)
        if (progress := told.said.progress) is not None:
            notepad.progress(progress.done, progress.total, progress.message)
        if (rest := told.said.rest) is not None:
            notepad.pause_queue(rest.seconds, rest.reason)
    notepad.leave_out(told.left_out)
