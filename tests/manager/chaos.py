"""Kills managers and workers at random under load, and watches from outside all the while."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from freehold.manager.process_slots import manager_in
from freehold.model.history import EventKind
from freehold.model.worker_info import LiveWorker, WorkerState
from tests.manager.load_app import naps
from tests.manager.service import Service
from tests.worker.fleet import eventually
from tests.worker.record import Line

#: Between two kills: the pace of the attack, nothing waits for it.
_PAUSE_SECONDS = (0.1, 1.5)
#: Before the next manager; none: when every worker has ended or drains for want of one.
_ABSENCE_SECONDS = (0.0, 0.0, 0.3, 1.0, 2.5, 3.0, 3.5, None)
_BACKLOG = 40


@dataclass(frozen=True)
class Strike:
    """One kill of an attack."""

    pause_seconds: float
    is_manager: bool
    #: Which of the workers, as a share of their number.
    share: float
    absence_seconds: float | None
    is_waited_for: bool


def attack(seed: int, kills: int) -> Iterator[Strike]:
    """The first two strikes are one of each kind, so that the shortest attack has both."""
    chance = random.Random(seed)
    for number in range(kills):
        yield Strike(
            pause_seconds=chance.uniform(*_PAUSE_SECONDS),
            is_manager=(chance.random() < 0.4 and number > 0) or number == 1,
            share=chance.random(),
            absence_seconds=chance.choice(_ABSENCE_SECONDS),
            is_waited_for=chance.random() < 0.5,
        )


@dataclass
class Findings:
    """The kills, and what was seen meanwhile."""

    managers_killed: int = 0
    workers_killed: int = 0
    looks: int = 0
    most: int = 0
    #: How often every working worker was seen to be one of the manager that is there.
    settled: int = 0
    ids: list[int] = field(default_factory=list)
    lost_leases: int = 0


class Chaos:
    """One attack, repeatable by its seed as far as a machine repeats itself."""

    def __init__(self, service: Service, seed: int, *arguments: str) -> None:
        self._service = service
        self._seed = seed
        self._arguments = arguments
        self._over = threading.Event()
        self.found = Findings()

    def run(self, kills: int) -> Findings:
        self.last = self._service.up(*self._arguments)
        self._service.until_workers(2)
        watching = [threading.Thread(target=each) for each in (self._watch, self._produce)]
        for thread in watching:
            thread.start()
        try:
            for strike in attack(self._seed, kills):
                time.sleep(strike.pause_seconds)
                if strike.is_manager:
                    self._kill_manager(strike)
                else:
                    self._kill_worker(strike)
            self._until_settled()
        finally:
            self._over.set()
            for thread in watching:
                thread.join()
        return self.found

    def _kill_manager(self, strike: Strike) -> None:
        self.last.kill()
        self.found.managers_killed += 1
        if strike.absence_seconds is None:
            self._until_settled()
        else:
            time.sleep(strike.absence_seconds)
        self.last = self._service.up(*self._arguments)
        if strike.is_waited_for:
            self._until_settled()

    def _kill_worker(self, strike: Strike) -> None:
        pids = eventually(self._service.worker_pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[int(strike.share * len(pids))], signal.SIGKILL)
        self.found.workers_killed += 1

    def _produce(self) -> None:
        """Work all the time, never much more than can be done."""
        chance = random.Random(self._seed)
        while not self._over.wait(0.05):
            if self._service.app.client.store.counts().ready < _BACKLOG:
                self.found.ids += [naps.enqueue(chance.uniform(0.01, 0.4)).id for _ in range(5)]

    # -- looking -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.found.looks += 1
            self.found.most = max(self.found.most, len(self._service.worker_pids()))

    def _until_settled(self) -> None:
        eventually(lambda: not self._astray())
        self.found.settled += 1

    def _astray(self) -> list[LiveWorker]:
        """Workers that take jobs, and are not those of the manager that is there."""
        folder = self._folder()
        manager = manager_in(folder) if folder else None
        alive = set(self._service.worker_pids())
        return [
            worker
            for worker in self._service.registered()
            if worker.pid in alive
            and worker.state is WorkerState.WORKING
            and (manager is None or worker.manager != manager)
        ]

    def _folder(self) -> Path | None:
        return next(iter(self._service.folder.glob("freehold-*/*-default")), None)

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
