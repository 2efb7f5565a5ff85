"""The worker processes of one manager: start, adopt, drain, replace. `manager.py` decides."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from freehold.exit_codes import EXIT_DONE, EXIT_RECYCLE
from freehold.manager import process_slots
from freehold.manager.restart_backoff import RestartBackoff
from freehold.manager.spawn import Kill, Start, kill, start_in
from freehold.manager.worker_process import ProcessEnd, WorkerProcess
from freehold.model.plural import count
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.telemetry import log

#: A worker that was asked to end if idle, and still runs after this time, was not idle.
IDLE_STOP_SECONDS = 5.0
#: A live process without a heartbeat in the store for this time is stuck.
SILENT_SECONDS = 60.0
#: A worker that drains this much longer than its grace period will not end by itself.
OVERDUE_SECONDS = 60.0


class Fleet:
    """All workers with a slot in the folder."""

    def __init__(
        self, folder: Path, max_count: int, start: Start, grace_seconds: float, kill: Kill = kill
    ) -> None:
        self._folder = folder
        self._max_count = max_count
        self._start = start
        self._kill = kill
        self._grace_seconds = grace_seconds
        self._backoff = RestartBackoff()
        self._workers: list[WorkerProcess] = []
        self.killed = 0
        #: Workers that this manager started and that died: pid and owner.
        self.dead: dict[int, str] = {}

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(self._workers)

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def owners(self) -> list[str]:
        return [owner for each in self._workers if (owner := each.owner) is not None]

    def working(self, now: float) -> list[WorkerProcess]:
        """Workers that claim jobs. A draining worker still has its slot, but does not count."""
        return [
            each
            for each in self._workers
            if each.draining_since is None
            and (each.idle_stop_at is None or now - each.idle_stop_at >= IDLE_STOP_SECONDS)
        ]

    # -- starting ----------------------------------------------------------------------------

    def adopt(self, now: float) -> None:
        """Take over the workers of the folder's former manager."""
        self._workers = [
            WorkerProcess(slot, now, kill=self._kill)
            for slot in process_slots.slots_in(self._folder, self._max_count)
            if slot.is_taken()
        ]
        if self._workers:
            log.info("took over %s of a former manager", count(len(self), "worker"))

    def start(self, count: int, now: float) -> None:
        """Start as many as there are free slots for; none during the restart backoff."""
        for _ in range(count):
            if len(self) >= self._max_count or not self._backoff.is_over(now):
                return
            self._start_one(now)

    def _start_one(self, now: float) -> None:
        own = {each.slot.path for each in self._workers}
        for slot in process_slots.slots_in(self._folder, self._max_count):
            if slot.path in own:
                continue
            try:
                process = start_in(slot, self._folder, self._start)
            except OSError as error:
                self._backoff.ended(now, now)
                log.error("cannot start a worker: %s", error)
                return
            if process is not None:
                self._workers.append(WorkerProcess(slot, now, process))
                log.info(
                    "started worker process %d (%d of at most %d)",
                    process.pid,
                    len(self),
                    self._max_count,
                )
                return

    # -- stopping ----------------------------------------------------------------------------

    def stop_if_idle(self, workers: Sequence[WorkerProcess], now: float) -> None:
        """Ask workers to end if they are still idle; this never interrupts a job."""
        for each in workers:
            each.send(signal.SIGUSR1)
            each.idle_stop_at = now

    def drain(self, now: float) -> None:
        for each in self._workers:
            each.drain(now)

    def replace_all(self, now: float) -> None:
        """The code has changed: drain every worker; new ones are started in their slots."""
        self._backoff.reset()
        self.drain(now)

    def signal(self, number: signal.Signals) -> None:
        for each in self._workers:
            each.send(number)

    def reap(self, now: float) -> None:
        """Remove the workers that have ended; kill those that neither work nor end."""
        for each in tuple(self._workers):
            end = each.end()
            if end is not None:
                if end.pid is not None and end.code != EXIT_DONE and each.owner is not None:
                    self.dead[end.pid] = each.owner
                self._workers.remove(each)
                self._log_end(each, end, now)
            else:
                self._backoff.alive(each.started_at, now)
                self._kill_if_overdue(each, now)

    def _log_end(self, each: WorkerProcess, end: ProcessEnd, now: float) -> None:
        was_requested = each.draining_since is not None or each.idle_stop_at is not None
        if end.code == EXIT_RECYCLE:
            log.info("worker process %s ended and asked to be replaced", end.pid)
        elif was_requested or end.code is None:
            log.info("worker process %s ended", end.pid or "of a former manager")
        elif self._backoff.ended(each.started_at, now):
            log.error(
                "worker process %s ended right after its start with code %s; next start in %.1f s",
                end.pid,
                end.code,
                self._backoff.seconds,
            )
        else:
            log.warning("worker process %s died with code %s; replacing it", end.pid, end.code)

    # -- heartbeats --------------------------------------------------------------------------

    def record_heartbeats(self, workers: dict[str, LiveWorker], now: float) -> None:
        for each in self._workers:
            worker = workers.get(each.owner or "")
            if worker is None:
                each.silent_since = now if each.silent_since is None else each.silent_since
                if now - each.silent_since >= SILENT_SECONDS and each.draining_since is None:
                    log.error(
                        "worker process %s is alive but sent no heartbeat for %.0f s; replacing it",
                        each.pid,
                        now - each.silent_since,
                    )
                    each.drain(now)
                continue
            each.silent_since = None
            if worker.state is not WorkerState.WORKING and each.draining_since is None:
                each.draining_since = now

    def ignore_silence(self) -> None:
        """The store was not reachable, so missing heartbeats prove nothing."""
        for each in self._workers:
            each.silent_since = None

    def _kill_if_overdue(self, each: WorkerProcess, now: float) -> None:
        if each.draining_since is None:
            return
        silent = each.silent_since is not None and now - each.silent_since >= SILENT_SECONDS
        # A worker that was silent for so long has lost its leases, so it needs no grace period.
        limit_seconds = OVERDUE_SECONDS if silent else self._grace_seconds + OVERDUE_SECONDS
        if now - each.draining_since >= limit_seconds:
            log.error("worker process %s does not end; killing it", each.pid)
            each.send(signal.SIGKILL)
            self.killed += 1
            each.draining_since = now
