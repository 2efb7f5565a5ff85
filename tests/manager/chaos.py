"""Kills managers and workers at random under load, and checks the processes from outside."""

from __future__ import annotations

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
from freehold.model.state import LEASED
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.store.types import JobFilter
from tests.manager.load_app import naps
from tests.manager.service import Service
from tests.worker.fleet import eventually
from tests.worker.handler_record import Line

#: Pause between two kills; nothing waits for it.
_PAUSE_SECONDS = (0.1, 1.5)
#: Time until the next manager: workers drain after some 3 s without one. None: the next manager
#: starts after every worker has ended or drains.
_ABSENCE_SECONDS = (0.0, 0.0, 0.3, 1.0, 2.5, 3.0, 3.5, None)
_BACKLOG = 40


@dataclass(frozen=True)
class Kill:
    """One kill of a run."""

    pause_seconds: float
    is_manager: bool
    #: Selects the worker: its index as a share of their number.
    share: float
    absence_seconds: float | None
    waits_for_adoption: bool


def planned_kills(seed: int, kills: int) -> Iterator[Kill]:
    """The first two kills are one of each kind, so that the shortest run has both."""
    chance = random.Random(seed)
    for number in range(kills):
        yield Kill(
            pause_seconds=chance.uniform(*_PAUSE_SECONDS),
            is_manager=(chance.random() < 0.4 and number > 0) or number == 1,
            share=chance.random(),
            absence_seconds=chance.choice(_ABSENCE_SECONDS),
            waits_for_adoption=chance.random() < 0.5,
        )


@dataclass
class Findings:
    """What was killed, and what was observed."""

    managers_killed: int = 0
    workers_killed: int = 0
    checks: int = 0
    max_workers: int = 0
    #: How often all working workers were adopted by the current manager.
    adoptions: int = 0
    ids: list[int] = field(default_factory=list)
    lost_leases: int = 0


class Chaos:
    """One run, repeatable by its seed as far as the machine allows."""

    def __init__(self, service: Service, seed: int, *arguments: str) -> None:
        self._service = service
        self._seed = seed
        self._arguments = arguments
        self._stopped = threading.Event()
        self.found = Findings()

    def run(self, kills: int) -> Findings:
        self.last = self._service.up(*self._arguments)
        self._service.until_workers(2)
        watching = [threading.Thread(target=each) for each in (self._watch, self._produce)]
        for thread in watching:
            thread.start()
        try:
            for kill in planned_kills(self._seed, kills):
                time.sleep(kill.pause_seconds)
                if kill.is_manager:
                    self._kill_manager(kill)
                else:
                    self._kill_worker(kill)
            self._until_adopted()
        finally:
            self._stopped.set()
            for thread in watching:
                thread.join()
        return self.found

    def _kill_manager(self, kill: Kill) -> None:
        self.last.kill()
        self.found.managers_killed += 1
        if kill.absence_seconds is None:
            self._until_adopted()
        else:
            time.sleep(kill.absence_seconds)
        self.last = self._service.up(*self._arguments)
        if kill.waits_for_adoption:
            self._until_adopted()

    def _kill_worker(self, kill: Kill) -> None:
        """Kills a worker that holds leases, so that they have to be recovered."""
        pids = eventually(self._busy_pids)
        try:
            os.kill(pids[int(kill.share * len(pids))], signal.SIGKILL)
        except ProcessLookupError:  # it ended just before, by a drain
            self._kill_worker(kill)
        else:
            self.found.workers_killed += 1

    def _busy_pids(self) -> list[int]:
        leased = self._service.app.operator.jobs(JobFilter(states=LEASED, limit=100)).jobs
        owners = {job.lease.owner for job in leased if job.lease is not None}
        workers = self._service.app._client.store.workers()
        alive = set(self._service.worker_pids())
        return sorted({each.pid for each in workers if each.owner in owners} & alive)

    def _produce(self) -> None:
        """Keep a bounded backlog all the time."""
        chance = random.Random(self._seed)
        while not self._stopped.wait(0.05):
            if self._service.app._client.store.counts().ready < _BACKLOG:
                self.found.ids += [naps.enqueue(chance.uniform(0.01, 0.4)).id for _ in range(5)]

    # -- checking ----------------------------------------------------------------------------

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            self.found.checks += 1
            self.found.max_workers = max(self.found.max_workers, len(self._service.worker_pids()))

    def _until_adopted(self) -> None:
        eventually(lambda: not self._not_adopted())
        self.found.adoptions += 1

    def _not_adopted(self) -> list[LiveWorker]:
        """Workers that claim jobs without a manager, or under another one than the current."""
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
        return next(iter(self._service.folder.glob("freehold/*-default")), None)

    # -- judging -----------------------------------------------------------------------------

    def every_second_start_has_a_cause(self) -> None:
        started: dict[int, list[Line]] = {job_id: [] for job_id in self.found.ids}
        for line in self._service.record.lines(what="start"):
            started[line.job].append(line)
        for job_id, starts in started.items():
            events = [event.kind for event in self._service.app._client.store.events(job_id)]
            self.found.lost_leases += events.count(EventKind.LEASE_LOST)
            assert len(starts) <= 1 + len(events), (job_id, starts, events)
            tokens = [start.token for start in starts]
            assert tokens == sorted(set(tokens)), (job_id, tokens)
