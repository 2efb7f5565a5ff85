"""A tenant moves while producers and workers are busy with it, and the mover itself is killed.

The mover is a process, killed a little later each time and started again. What a producer was told
exists must be there in the end, once, and have run once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from msgspec import structs

from leasehold import Leasehold, OutcomeUnknown, StoreUnavailable
from leasehold.model.state import State
from leasehold.model.tenant import HOME
from leasehold.store.contract import Filter
from leasehold.tasks import Options, raw_job
from tests.tenants.rooms import EAST
from tests.worker.fleet import ROOT, WorkerProcess, eventually
from tests.worker.lifeline import LIFELINE_VARIABLE
from tests.worker.record import RECORD_VARIABLE, Record

PRODUCERS = 3
TASK = "tests.worker.fleet_app.quick"
#: From before the mover has begun to after it has ended.
KILLED_AFTER_SECONDS = (0.5, 0.7, 0.9, 1.1, 1.4)


class Producer(threading.Thread):
    """Enqueues until told to stop; what it is not told about it asks for again, by its key."""

    def __init__(self, app: Leasehold, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self._app = app
        self._halt = stop
        self.acknowledged: list[int] = []
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
            except (StoreUnavailable, OutcomeUnknown):
                self._halt.wait(0.02)


@contextmanager
def producing(app: Leasehold) -> Iterator[list[Producer]]:
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


def move(to: str, environment: dict[str, str], kill_after_seconds: float | None) -> bool:
    """Whether it came to its end."""
    mover = subprocess.Popen(
        [sys.executable, "-m", "leasehold", "tenants", "move", "acme", to],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        out, err = mover.communicate(timeout=kill_after_seconds)
    except subprocess.TimeoutExpired:
        mover.kill()
        mover.communicate()
        return False
    assert (mover.returncode, out) == (0, f"tenant acme lives in {to}\n"), err
    return True


@pytest.mark.requirement("S4.2", "S2.1")
def test_nothing_is_lost_or_doubled_however_often_the_mover_is_killed(
    urls: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEHOLD_PLACE_EAST", urls[EAST])
    environment = {
        **os.environ,
        "LEASEHOLD_URL": urls[HOME],
        RECORD_VARIABLE: str(tmp_path / "record"),
        LIFELINE_VARIABLE: "1",
    }
    app = Leasehold(urls[HOME])
    app.migrate()
    app.tenants.create("acme")
    acme = app.tenant("acme")
    with working(environment, tmp_path) as worker:
        with producing(acme) as producers:
            for to in (EAST, HOME, EAST):
                _move_in_the_end(to, environment)
                before = [len(each.acknowledged) for each in producers]
                eventually(lambda: [len(each.acknowledged) for each in producers] > before)  # noqa: B023
        assert [each.error for each in producers] == [None] * PRODUCERS
        eventually(lambda: not any(structs.astuple(acme.operate.counts())))
        assert worker.drain() == 0
    told = sorted(job for each in producers for job in each.acknowledged)
    assert len(told) == len(set(told)) > PRODUCERS * 3
    found = _all_jobs(acme)
    assert set(told) <= found.keys()
    assert set(found.values()) == {State.SUCCEEDED}
    starts = [line.job for line in Record(tmp_path / "record").lines(what="start")]
    assert sorted(starts) == sorted(found)
    assert app.tenants.get("acme").place == EAST
    assert not app.tenants.places[HOME].holds("acme")
    app.close()


def _move_in_the_end(to: str, environment: dict[str, str]) -> None:
    for seconds in KILLED_AFTER_SECONDS:
        if move(to, environment, seconds):
            return
    assert move(to, environment, None)


def _all_jobs(app: Leasehold) -> dict[int, State]:
    found: dict[int, State] = {}
    before: int | None = None
    while True:
        page = app.operate.jobs(Filter(limit=1000, before=before))
        for job in page.jobs:
            assert job.id not in found
            found[job.id] = job.state
        if page.next is None:
            return found
        before = page.next
