"""Kills managers and workers at random under load, and watches from outside all the while."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from leasehold.model.history import EventKind
from leasehold.model.registry import WorkerState
from leasehold.seats import manager_in
from tests.manager.load_app import naps
from tests.manager.service import Service, Up
from tests.worker.record import Line

#: A worker is its manager's, or drains, this long after the death of the one before.
SETTLED_SECONDS = 5.0
#: Between two kills: the pace of the attack, nothing waits for it.
_PAUSE_SECONDS = (0.1, 1.5)
#: Not always back at once: workers drain after some 3 s without a manager.
_ABSENCE_SECONDS = (0.0, 0.0, 0.3, 1.0, 2.5, 3.0, 3.5, 6.0)
_BACKLOG = 40


@dataclass
class Findings:
    """What was done, and what was seen."""

    managers_killed: int = 0
    workers_killed: int = 0
    looks: int = 0
    most: int = 0
    #: Looks at a moment when everybody had to be adopted or draining, and who was not.
    settled_looks: int = 0
    unsettled: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    lost_leases: int = 0

    @property
    def kills(self) -> int:
        return self.managers_killed + self.workers_killed


class Chaos:
    """One attack, repeatable by its seed as far as a machine repeats itself."""

    def __init__(self, service: Service, seed: int, *arguments: str) -> None:
        self._service = service
        self._random = random.Random(seed)
        self._arguments = arguments
        self._over = threading.Event()
        self._lonely_since = time.monotonic()
        self._seen_first: dict[int, float] = {}
        self.found = Findings()

    def run(self, kills: int) -> Findings:
        up = self._service.up(*self._arguments)
        self._service.until_workers(2)
        watching = [threading.Thread(target=each) for each in (self._watch, self._produce)]
        for thread in watching:
            thread.start()
        try:
            while self.found.kills < kills:
                time.sleep(self._random.uniform(*_PAUSE_SECONDS))
                up = self._strike(up)
            time.sleep(SETTLED_SECONDS + 1.0)  # one more moment to look at
            self.last = up
        finally:
            self._over.set()
            for thread in watching:
                thread.join()
        return self.found

    def _strike(self, up: Up) -> Up:
        if self._random.random() < 0.4:
            self._lonely_since = float("inf")  # from now until the next one is there
            up.kill()
            self._lonely_since = time.monotonic()
            self.found.managers_killed += 1
            time.sleep(self._random.choice(_ABSENCE_SECONDS))
            up = self._service.up(*self._arguments)
            if self._random.random() < 0.5:  # time to settle, and to be looked at
                time.sleep(SETTLED_SECONDS)
            return up
        pids = self._service.worker_pids()
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._random.choice(pids), signal.SIGKILL)
                self.found.workers_killed += 1
        return up

    def _produce(self) -> None:
        """Work all the time, never much more than can be done."""
        while not self._over.wait(0.05):
            if self._service.app.client.store.counts().ready < _BACKLOG:
                self.found.ids += [
                    naps.enqueue(self._random.uniform(0.01, 0.4)).id for _ in range(5)
                ]

    # -- looking -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            pids = self._service.worker_pids()
            now = time.monotonic()
            self.found.looks += 1
            self.found.most = max(self.found.most, len(pids))
            self._seen_first = {pid: self._seen_first.get(pid, now) for pid in pids}
            if self.found.looks % 10 == 0 and self._has_settled(now):
                self._look_who_is_whose(now)

    def _has_settled(self, now: float) -> bool:
        return now - self._lonely_since >= SETTLED_SECONDS

    def _look_who_is_whose(self, now: float) -> None:
        folder = self._folder()
        registered = {worker.pid: worker for worker in self._service.registered()}
        manager = manager_in(folder) if folder else None
        alive = set(self._service.worker_pids())
        if not self._has_settled(time.monotonic()):
            return  # another one died while we looked
        self.found.settled_looks += 1
        for pid, since in self._seen_first.items():
            worker = registered.get(pid)
            if pid not in alive or now - since < SETTLED_SECONDS:
                continue
            if worker is None:  # it has left, or not come yet: whatever it is, it is not working
                continue
            if worker.state is WorkerState.WORKING and (not manager or worker.manager != manager):
                late = now - self._lonely_since
                self.found.unsettled.append(
                    f"{pid} of {worker.manager}, not of {manager}, {late:.1f} s after"
                )

    def _folder(self) -> Path | None:
        return next(iter(self._service.folder.glob("leasehold-*/*-default")), None)

    # -- judging -----------------------------------------------------------------------------

    def every_second_start_has_a_cause(self) -> None:
        started: dict[int, list[Line]] = {job_id: [] for job_id in self.found.ids}
        for line in self._service.record.lines(what="start"):
            started[line.job].append(line)
        for job_id, starts in started.items():
            events = [event.kind for event in self._service.app.client.store.events(job_id)]
            self.found.lost_leases += events.count(EventKind.LEASE_LOST)
            assert len(starts) <= 1 + len(events), (job_id, starts, events)
            tokens = [start.token for start in starts]
            assert tokens == sorted(set(tokens)), (job_id, tokens)
