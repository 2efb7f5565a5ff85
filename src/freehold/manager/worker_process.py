"""A worker process in its slot: started by this manager, or taken over from another one."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from freehold.manager.process_slots import ProcessSlot
from freehold.manager.spawn import ChildProcess, Kill, kill


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a worker ended; the exit code is known only to the manager that started it."""

    pid: int | None
    code: int | None


class WorkerProcess:
    """One worker process, and what this manager has observed and requested."""

    def __init__(
        self,
        slot: ProcessSlot,
        started_at: float,
        process: ChildProcess | None = None,
        kill: Kill = kill,
    ) -> None:
        self.slot = slot
        self.started_at = started_at
        self._process = process
        self._kill = kill
        self._drain_sent = False
        #: Since when the worker drains, by request or by itself.
        self.draining_since: float | None = None
        #: When it was asked to end if it is idle.
        self.idle_stop_at: float | None = None
        #: Since when the store has no heartbeat of it.
        self.silent_since: float | None = None

    @property
    def owner(self) -> str | None:
        """None until the worker has written itself into its slot."""
        found = self.slot.owner()
        return found.owner if found else None

    @property
    def pid(self) -> int | None:
        if self._process is not None:
            return self._process.pid
        found = self.slot.owner()
        return found.pid if found else None

    def end(self) -> ProcessEnd | None:
        """None while the process is alive."""
        code = None if self._process is None else self._process.poll()
        if (self._process is not None and code is None) or self.slot.is_taken():
            return None
        return ProcessEnd(None if self._process is None else self._process.pid, code)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # Popen knows whether the pid is still this process
        elif (found := self.slot.owner()) is not None and self.slot.is_taken():
            self._kill(found, number)

    def drain(self, now: float) -> None:
        """Send SIGTERM once: a second one would stop running jobs."""
        if not self._drain_sent:
            self.send(signal.SIGTERM)
            self._drain_sent = True
        if self.draining_since is None:
            self.draining_since = now
