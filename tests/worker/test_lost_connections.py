"""PostgreSQL terminates connections, or crashes, while jobs run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from freehold import OutcomeUnknown, StoreUnavailable
from freehold.lab.devpostgres import DevPostgres
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, WorkerProcess, eventually

_NAME = "workers-of-this-test"
_THEIRS = f"from pg_stat_activity where application_name = '{_NAME}'"
_LISTENING = f"{_THEIRS} and (query like 'listen %' or query like 'select pg_notify(%')"


def named_worker(fleet: Fleet, *arguments: str, lease: float, **more: str) -> WorkerProcess:
    """Its connections can be distinguished from those of the test."""
    environment = {"FREEHOLD_URL": f"{fleet.url}&application_name={_NAME}", **more}
    return fleet.start(*arguments, lease=lease, environment=environment)


@pytest.mark.requirement("S0.6", "S1.3", "S3.8")
def test_no_handler_notices_that_all_connections_are_terminated_repeatedly(
    postgres_fleet: Fleet,
) -> None:
    fleet = postgres_fleet
    worker = named_worker(fleet, "--concurrency", "30", lease=3.0)
    ids = [fleet_app.sleeper.enqueue(2.0).id for _ in range(30)]
    for job_id in ids:
        fleet.started(job_id)
    for _ in range(4):
        # As soon as the worker has connections again.
        eventually(lambda: fleet.sql(f"select pg_terminate_backend(pid) {_THEIRS}"))
    for job_id in ids:
        job = fleet.succeeded(job_id)
        assert (job.attempt, job.lost_attempts) == (1, 0)
        assert fleet.record.steps(job_id) == ["start", "end"]
    assert fleet.succeeded(fleet_app.quick.enqueue("after").id).attempt == 1
    assert worker.drain() == 0


@pytest.mark.requirement("S4.5", "S0.15")
def test_a_terminated_listener_reconnects_and_jobs_arrive_by_notification_again(
    postgres_fleet: Fleet,
) -> None:
    """Only a notification can deliver the cancel in time: see test_stop_requests."""
    fleet = postgres_fleet
    rarely = {"FREEHOLD_WORKERS_REQUEST_POLL_SECONDS": "900"}
    worker = named_worker(fleet, lease=3600.0, **rarely)
    handle = fleet_app.sleeper.enqueue(600.0)
    fleet.started(handle.id)
    before = eventually(lambda: fleet.sql(f"select pid {_LISTENING}"))
    assert len(before) == 1
    fleet.sql(f"select pg_terminate_backend({before[0][0]})")
    eventually(lambda: fleet.sql(f"select pid {_LISTENING} and pid <> {before[0][0]}"))
    handle.cancel()
    fleet.until(handle.id, State.CANCELED)
    assert fleet.record.lines(handle.id, "stopped: canceled, held: True")
    assert worker.drain() == 0


@pytest.mark.requirement("S3.2", "S3.8", "S0.15", "P7")
def test_workers_continue_by_themselves_after_the_server_crashes_under_load(
    own_server: tuple[Fleet, DevPostgres],
) -> None:
    fleet, server = own_server
    workers = [fleet.start("--concurrency", "4", lease=2.0) for _ in range(2)]
    with producing() as ids:
        for _ in range(2):
            done = len(fleet.record.lines(what="end")) + 20
            eventually(lambda done=done: len(fleet.record.lines(what="end")) >= done)  # type: ignore[misc]
            server.stop("immediate")
            server.start()
            back = time.monotonic()
            eventually(lambda back=back: _worked_since(fleet, back))  # type: ignore[misc]
    assert len(ids) > 40
    for job_id in ids:
        fleet.succeeded(job_id)
    fleet.every_second_start_has_a_cause()
    assert [worker.drain() for worker in workers] == [0, 0]
    assert fleet.nothing_leased()


def _worked_since(fleet: Fleet, timestamp: float) -> bool:
    return any(line.at > timestamp for line in fleet.record.lines(what="start"))


@contextmanager
def producing() -> Iterator[list[int]]:
    """Enqueue all the time. An enqueue without acknowledgement is repeated under the same key."""
    ids: list[int] = []
    unexpected: list[BaseException] = []
    stop = threading.Event()

    def produce() -> None:
        try:
            while not stop.wait(0.02):
                ids.append(_acknowledged(f"job-{len(ids)}"))
        except BaseException as error:
            unexpected.append(error)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield ids
    finally:
        stop.set()
        thread.join()
    assert not unexpected, unexpected


def _acknowledged(key: str) -> int:
    task = fleet_app.sleeper.using(idempotency_key=key, max_attempts=10)
    deadline = time.monotonic() + 120.0
    while True:
        try:
            return task.enqueue(0.05).id
        except (StoreUnavailable, OutcomeUnknown):  # the only ones that a producer may see
            assert time.monotonic() < deadline
            time.sleep(0.05)
