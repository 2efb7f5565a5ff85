"""A worker on its seat: a process that this manager has started, or one that it found there."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from freehold.manager.process_slots import ProcessSlot
from freehold.manager.spawn import ChildProcess, Kill, kill


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a worker ended; of one that somebody else had started, nobody knows the code."""

    pid: int | None
    code: int | None


class WorkerProcess:
    """One worker, and what this manager has seen and asked of it."""

    def __init__(
        self,
        seat: ProcessSlot,
        began: float,
        process: ChildProcess | None = None,
        kill: Kill = kill,
    ) -> None:
        self.seat = seat
        self.began = began
        self._process = process
        self._kill = kill
        self._was_asked = False
        #: Since when it is on its way out: asked to, or seen to be.
        self.drains_since: float | None = None
        #: When it was asked to go if it had nothing to do.
        self.rested_at: float | None = None
        #: Since when the store has not heard of it.
        self.silent_since: float | None = None

    @property
    def owner(self) -> str | None:
        """None until it has said a word."""
        sitter = self.seat.sitter()
        return sitter.owner if sitter else None

    @property
    def pid(self) -> int | None:
        if self._process is not None:
            return self._process.pid
        sitter = self.seat.sitter()
        return sitter.pid if sitter else None

    def end(self) -> ProcessEnd | None:
        """None while it lives."""
        code = None if self._process is None else self._process.poll()
        if (self._process is not None and code is None) or self.seat.is_taken():
            return None
        return ProcessEnd(None if self._process is None else self._process.pid, code)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # which knows whether it still is that process
        elif (sitter := self.seat.sitter()) is not None and self.seat.is_taken():
            self._kill(sitter, number)

    def drain(self, now: float) -> None:
        """Asked once: a second SIGTERM would hurry it."""
        if not self._was_asked:
            self._was_asked = True
            self.send(signal.SIGTERM)
        if self.drains_since is None:
            self.drains_since = now
