"""A busy tenant: producers that record the ids they got, and a worker that records its starts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from msgspec import structs

from freehold import Freehold, OutcomeUnknown, StoreUnavailable
from freehold.model.options import Options
from freehold.model.state import State
from freehold.model.tenant import HOME_SHARD
from freehold.store.types import JobFilter
from freehold.tasks import raw_job
from tests.worker.fleet import WorkerProcess, eventually
from tests.worker.handler_record import RECORD_VARIABLE, Record
from tests.worker.lifeline import LIFELINE_VARIABLE

PRODUCERS = 3
TASK = "tests.worker.fleet_app.quick"
#: Two minutes of refusals: no move takes that long, and the error is shown before the time limit.
_TRIES = 6000
_RETRY_SECONDS = 0.02


def environment_of(urls: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment variables of a test's processes."""
    return {
        **os.environ,
        "FREEHOLD_URL": urls[HOME_SHARD],
        RECORD_VARIABLE: str(folder / "record"),
        LIFELINE_VARIABLE: "1",
    }


class Producer(threading.Thread):
    """Enqueues until it is stopped. After an error it enqueues again with the same key."""

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
                if self._halt.wait(0.02):
                    return
                self._enqueue(f"{self.name}-{number}")
        except BaseException as error:
            self.error = error

    def _enqueue(self, key: str) -> None:
        job = raw_job(TASK, Options(idempotency_key=key), b"{}")
        for _ in range(_TRIES):
            try:
                self.acknowledged.append(self._app._submit(job).id)
                return
            except (StoreUnavailable, OutcomeUnknown) as refusal:
                self.refusal = refusal
                time.sleep(_RETRY_SECONDS)
        raise AssertionError(f"refused {_TRIES} times") from self.refusal


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
    arguments = [
        "--app",
        "tests.worker.fleet_app:app",
        "--tenant",
        "acme",
        "--lease-timeout-seconds",
        "5",
    ]
    worker = WorkerProcess(arguments, environment, folder / "worker.log")
    try:
        yield worker.until_ready()
    finally:
        worker.destroy()


def wait_until_served(producers: list[Producer]) -> None:
    """Until every producer has stored another job. A producer that ended with an error fails the
    test at once: it will never store another."""
    before = [len(each.acknowledged) for each in producers]

    def was_served() -> list[bool]:
        check_alive(producers)
        return [
            len(each.acknowledged) > count for each, count in zip(producers, before, strict=True)
        ]

    try:
        eventually(lambda: all(was_served()))
    except AssertionError as error:
        served = zip(producers, was_served(), strict=True)
        stuck = [each for each, is_served in served if not is_served]
        error.add_note("\n".join(f"{each.name} was refused: {each.refusal!r}" for each in stuck))
        raise


def check_alive(producers: list[Producer]) -> None:
    for each in producers:
        if each.error is not None:
            raise AssertionError(f"producer {each.name} ended") from each.error


def drain(app: Freehold, worker: WorkerProcess) -> None:
    try:
        eventually(lambda: not any(structs.astuple(app.operator.counts())))
    except AssertionError as error:
        error.add_note(f"{app.operator.counts()}; the worker's log ends with:")
        error.add_note(worker.log[-4000:])
        raise
    assert worker.drain() == 0


def check_nothing_lost_or_doubled(app: Freehold, producers: list[Producer], folder: Path) -> None:
    """Every acknowledged job exists once and has run once."""
    check_alive(producers)
    acknowledged = sorted(job for each in producers for job in each.acknowledged)
    assert len(acknowledged) == len(set(acknowledged)) > PRODUCERS * 3
    found = _all_jobs(app)
    assert set(acknowledged) <= found.keys()
    assert set(found.values()) == {State.SUCCEEDED}
    starts = [line.job for line in Record(folder / "record").lines(what="start")]
    assert sorted(starts) == sorted(found)


def _all_jobs(app: Freehold) -> dict[int, State]:
    found: dict[int, State] = {}
    before: int | None = None
    while True:
        page = app.operator.jobs(JobFilter(limit=1000, before=before))
        for job in page.jobs:
            assert job.id not in found
            found[job.id] = job.state
        if page.next is None:
            return found
        before = page.next
