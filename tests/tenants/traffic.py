"""A tenant that is busy: producers that count what they were told, and a worker that records."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from msgspec import structs

from freehold import Freehold, OutcomeUnknown, StoreUnavailable
from freehold.model.state import State
from freehold.model.tenant import HOME_SHARD
from freehold.store.types import JobFilter
from freehold.tasks import Options, raw_job
from tests.worker.fleet import WorkerProcess, eventually
from tests.worker.lifeline import LIFELINE_VARIABLE
from tests.worker.record import RECORD_VARIABLE, Record

PRODUCERS = 3
TASK = "tests.worker.fleet_app.quick"


def surroundings(urls: dict[str, str], folder: Path) -> dict[str, str]:
    """What the processes of a test are told."""
    return {
        **os.environ,
        "FREEHOLD_URL": urls[HOME_SHARD],
        RECORD_VARIABLE: str(folder / "record"),
        LIFELINE_VARIABLE: "1",
    }


class Producer(threading.Thread):
    """Enqueues until told to stop; what it is not told about it asks for again, by its key."""

    def __init__(self, app: Freehold, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self._app = app
        self._halt = stop
        self.acknowledged: list[int] = []
        self.refusal: Exception | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            for number in count():
                if self._halt.wait(0.01):
                    return
                self._enqueue(f"{self.name}-{number}")
        except BaseException as error:
            self.error = error

    def _enqueue(self, key: str) -> None:
        job = raw_job(TASK, Options(idempotency_key=key), b"{}")
        while True:
            try:
                self.acknowledged.append(self._app.submit(job).id)
                return
            except (StoreUnavailable, OutcomeUnknown) as refusal:
                self.refusal = refusal
                self._halt.wait(0.02)


@contextmanager
def producing(app: Freehold) -> Iterator[list[Producer]]:
    stop = threading.Event()
    producers = [Producer(app, f"p{number}", stop) for number in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    try:
        yield producers
    finally:
        stop.set()
        for producer in producers:
            producer.join()


@contextmanager
def working(environment: dict[str, str], folder: Path) -> Iterator[WorkerProcess]:
    arguments = ["--app", "tests.worker.fleet_app:app", "--tenant", "acme", "--lease-seconds", "5"]
    worker = WorkerProcess(arguments, environment, folder / "worker.log")
    try:
        yield worker.until_ready()
    finally:
        worker.destroy()


def is_served(producers: list[Producer]) -> None:
    """Every producer was told of another job since this was asked. One that ended with an error
    fails the test at once: it will never be told of another."""
    before = [len(each.acknowledged) for each in producers]

    def was_told() -> list[bool]:
        check_alive(producers)
        return [len(each.acknowledged) > told for each, told in zip(producers, before, strict=True)]

    try:
        eventually(lambda: all(was_told()))
    except AssertionError as error:
        stuck = [each for each, told in zip(producers, was_told(), strict=True) if not told]
        error.add_note("\n".join(f"{each.name} was refused: {each.refusal!r}" for each in stuck))
        raise


def check_alive(producers: list[Producer]) -> None:
    for each in producers:
        if each.error is not None:
            raise AssertionError(f"producer {each.name} ended") from each.error


def drained(app: Freehold, worker: WorkerProcess) -> None:
    try:
        eventually(lambda: not any(structs.astuple(app.operate.counts())))
    except AssertionError as error:
        error.add_note(f"{app.operate.counts()}; the worker's log ends with:")
        error.add_note(worker.log[-4000:])
        raise
    assert worker.drain() == 0


def check_nothing_lost_or_doubled(app: Freehold, producers: list[Producer], folder: Path) -> None:
    """What producers were told of is there, once, and has run, once."""
    check_alive(producers)
    told = sorted(job for each in producers for job in each.acknowledged)
    assert len(told) == len(set(told)) > PRODUCERS * 3
    found = _all_jobs(app)
    assert set(told) <= found.keys()
    assert set(found.values()) == {State.SUCCEEDED}
    starts = [line.job for line in Record(folder / "record").lines(what="start")]
    assert sorted(starts) == sorted(found)


def _all_jobs(app: Freehold) -> dict[int, State]:
    found: dict[int, State] = {}
    before: int | None = None
    while True:
        page = app.operate.jobs(JobFilter(limit=1000, before=before))
        for job in page.jobs:
            assert job.id not in found
            found[job.id] = job.state
        if page.next is None:
            return found
        before = page.next
