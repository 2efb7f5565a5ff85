"""The workers of one manager: started, adopted, asked to go, replaced. It decides nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from freehold.exit_codes import EXIT_RECYCLE
from freehold.manager import process_slots
from freehold.manager.restart_backoff import RestartBackoff
from freehold.manager.spawn import Kill, Start, kill, start_on
from freehold.manager.worker_process import ProcessEnd, WorkerProcess
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.telemetry import log

#: A worker that was asked to go, and has not, had something to do after all.
REST_SECONDS = 5.0
#: A worker that lives and of which the store hears nothing for this long is stuck.
SILENT_SECONDS = 60.0
#: What drains longer than its grace period by this much will not end by itself.
OVERDUE_SECONDS = 60.0


class Fleet:
    """Everybody who has a seat in the folder."""

    def __init__(
        self, folder: Path, most: int, start: Start, grace_seconds: float, kill: Kill = kill
    ) -> None:
        self._folder = folder
        self._most = most
        self._start = start
        self._kill = kill
        self._grace_seconds = grace_seconds
        self._patience = RestartBackoff()
        self._seated: list[WorkerProcess] = []
        self.killed = 0

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(self._seated)

    def __len__(self) -> int:
        return len(self._seated)

    @property
    def owners(self) -> list[str]:
        return [owner for each in self._seated if (owner := each.owner) is not None]

    def working(self, now: float) -> list[WorkerProcess]:
        """Those who are there to stay. Whoever is on the way out has a seat, but is no help."""
        return [
            each
            for each in self._seated
            if each.drains_since is None
            and (each.rested_at is None or now - each.rested_at >= REST_SECONDS)
        ]

    # -- coming ------------------------------------------------------------------------------

    def adopt(self, now: float) -> None:
        """Whoever sits here already was another manager's, which is gone."""
        self._seated = [
            WorkerProcess(seat, now, kill=self._kill)
            for seat in process_slots.slots_in(self._folder, self._most)
            if seat.is_taken()
        ]
        if self._seated:
            log.info("%d workers of a former manager are taken over", len(self._seated))

    def start(self, count: int, now: float) -> None:
        """So many, as far as there are seats; none while they keep dying."""
        for _ in range(count):
            if len(self) >= self._most or not self._patience.is_over(now):
                return
            self._start_one(now)

    def _start_one(self, now: float) -> None:
        mine = {each.seat.path for each in self._seated}
        for seat in process_slots.slots_in(self._folder, self._most):
            if seat.path in mine:
                continue
            try:
                process = start_on(seat, self._folder, self._start)
            except OSError as error:
                self._patience.died(now, now)
                log.error("no worker can be started: %s", error)
                return
            if process is not None:
                self._seated.append(WorkerProcess(seat, now, process))
                log.info(
                    "worker process %d starts, %d of at most %d", process.pid, len(self), self._most
                )
                return

    # -- going -------------------------------------------------------------------------------

    def rest(self, some: Sequence[WorkerProcess], now: float) -> None:
        """Ask them to go if they still have nothing to do: no job is ever interrupted by it."""
        for each in some:
            each.rested_at = now
            each.send(signal.SIGUSR1)

    def drain(self, now: float) -> None:
        for each in self._seated:
            each.drain(now)

    def renew(self, now: float) -> None:
        """Their code has changed: those who are here go, and others come."""
        self._patience.forget()
        self.drain(now)

    def signal(self, number: signal.Signals) -> None:
        for each in self._seated:
            each.send(number)

    def reap(self, now: float) -> None:
        """Take leave of those that have ended; kill what neither works nor ends."""
        for each in tuple(self._seated):
            end = each.end()
            if end is not None:
                self._seated.remove(each)
                self._tell(each, end, now)
            else:
                self._patience.lives(each.began, now)
                self._end_if_overdue(each, now)

    def _tell(self, each: WorkerProcess, end: ProcessEnd, now: float) -> None:
        asked = each.drains_since is not None or each.rested_at is not None
        if end.code == EXIT_RECYCLE:
            log.info("worker process %s has ended: it asked to be replaced", end.pid)
        elif asked or end.code is None:
            log.info("worker process %s has ended", end.pid or "of a former manager")
        elif self._patience.died(each.began, now):
            log.error(
                "worker process %s ended right after its start with code %s: the next one "
                "starts in %.1f s",
                end.pid,
                end.code,
                self._patience.seconds,
            )
        else:
            log.warning("worker process %s died with code %s and is replaced", end.pid, end.code)

    # -- what the store says of them ---------------------------------------------------------

    def heard(self, workers: dict[str, LiveWorker], now: float) -> None:
        for each in self._seated:
            worker = workers.get(each.owner or "")
            if worker is None:
                each.silent_since = now if each.silent_since is None else each.silent_since
                if now - each.silent_since >= SILENT_SECONDS and each.drains_since is None:
                    log.error(
                        "worker process %s lives, but nobody has heard of it for %.0f s: it "
                        "is recycled",
                        each.pid,
                        now - each.silent_since,
                    )
                    each.drain(now)
                continue
            each.silent_since = None
            if worker.state is not WorkerState.WORKING and each.drains_since is None:
                each.drains_since = now

    def heard_nothing(self) -> None:
        """The store did not answer: nobody's silence means anything."""
        for each in self._seated:
            each.silent_since = None

    def _end_if_overdue(self, each: WorkerProcess, now: float) -> None:
        if each.drains_since is None:
            return
        silent = each.silent_since is not None and now - each.silent_since >= SILENT_SECONDS
        # Whoever is silent for so long has lost its leases: its jobs are others' by now.
        patience = OVERDUE_SECONDS if silent else self._grace_seconds + OVERDUE_SECONDS
        if now - each.drains_since >= patience:
            log.error("worker process %s does not end: it is killed", each.pid)
            self.killed += 1
            each.drains_since = now
            each.send(signal.SIGKILL)
