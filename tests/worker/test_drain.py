"""SIGTERM: no new claims, no attempt charged that had not started, no lease left."""

from __future__ import annotations

import asyncio
import re
import signal
import time

import pytest

from freehold.exit_codes import EXIT_CRASHED
from freehold.model.history import EventKind
from freehold.model.job import Job
from freehold.model.state import State
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually


@pytest.mark.requirement("S4.11", "S2.3", "P7")
@pytest.mark.either_store
def test_running_jobs_may_end_and_waiting_jobs_are_given_back_uncharged(fleet: Fleet) -> None:
    # Many short jobs make the worker claim ahead; a longer one then holds its only slot. All are
    # there before the worker, which may be faster than this process.
    short = [fleet_app.quick.prepare() for _ in range(300)]
    jobs = [*short[:200], fleet_app.sleeper.prepare(4.0), *short[200:]]
    running, *waiting = [handle.id for handle in fleet.app.enqueue_many(jobs)][200:]
    worker = fleet.start("--concurrency", "1", "--shutdown-grace-seconds", "30", lease=30.0)
    fleet.started(running)
    seen = fleet.app._client.store.read(waiting)  # at once: the longer job ends soon
    assigned = [i for i in waiting if seen[i].state is State.ASSIGNED]
    assert assigned
    assert worker.drain() == 0
    assert fleet.nothing_leased()
    assert fleet.state(running) is State.SUCCEEDED
    for job_id in waiting:
        job = fleet.job(job_id)
        assert (job.state, job.attempt, job.lease) == (State.QUEUED, 0, None)
        assert not fleet.record.starts(job_id)
    for job_id in assigned:
        assert fleet.events(job_id) == [EventKind.GIVEN_BACK]
    fleet.start("--concurrency", "1")
    for job_id in waiting:
        assert fleet.succeeded(job_id).attempt == 1


@pytest.mark.requirement("S4.11", "P7", "P13")
@pytest.mark.either_store
def test_after_the_grace_lane_jobs_pause_and_others_return_to_the_queue(fleet: Fleet) -> None:
    """Coroutines, threads and processes alike."""
    worker = fleet.start("--shutdown-grace-seconds", "0.5", lease=30.0)
    tasks: list[fleet_app.Sleeps] = [fleet_app.sleeper, fleet_app.polite, fleet_app.apart]
    plain = [task.enqueue(600.0).id for task in tasks]
    lanes = [task.using(target=task.name).enqueue(600.0).id for task in tasks]
    for job_id in plain + lanes:
        fleet.started(job_id)
    began = time.monotonic()
    assert worker.drain() == 0
    assert time.monotonic() - began >= 0.5
    assert fleet.nothing_leased()
    for job_id in plain:
        assert _facts(fleet.job(job_id)) == (State.QUEUED, 0, "its worker was shut down")
        assert fleet.job(job_id).run_at <= fleet.app.operator.now()
    for job_id in lanes:
        state, attempt, reason = _facts(fleet.job(job_id))
        assert (state, attempt) == (State.PAUSED, 0)
        assert reason is not None
        assert re.fullmatch(
            r"Job was interrupted by user: worker w\S+ was shut down before the job ended", reason
        )
    for job_id in plain + lanes:
        assert fleet.events(job_id) == [EventKind.DRAINED]
        assert "end" not in fleet.record.steps(job_id)
    for job_id in plain[:2]:
        assert fleet.record.steps(job_id) == ["start", "stopped: drain, held: True"]


def _facts(job: Job) -> tuple[State, int, str | None]:
    return job.state, job.attempt, job.reason


@pytest.mark.requirement("S4.11")
@pytest.mark.either_store
def test_a_second_signal_stops_running_jobs_at_once(fleet: Fleet) -> None:
    worker = fleet.start("--shutdown-grace-seconds", "3000", lease=30.0)
    job_id = fleet_app.sleeper.enqueue(600.0).id
    fleet.started(job_id)
    worker.send(signal.SIGTERM)
    eventually(lambda: " drains" in worker.log)
    assert "waiting up to 3000 s for 1 running job to end; another SIGTERM or Ctrl-C" in worker.log
    assert fleet.state(job_id) is State.RUNNING or fleet.state(job_id) is State.ASSIGNED
    worker.send(signal.SIGINT)
    assert worker.ended() == 0
    assert _facts(fleet.job(job_id)) == (State.QUEUED, 0, "its worker was shut down")


@pytest.mark.requirement("S4.11", "P7")
@pytest.mark.either_store
def test_a_signal_to_the_whole_group_drains_child_processes_too(fleet: Fleet) -> None:
    """As init systems and terminals send it: the child may continue within the grace period."""
    worker = fleet.start("--shutdown-grace-seconds", "30", lease=30.0)
    job_id = fleet_app.apart.enqueue(1.5).id
    fleet.started(job_id)
    worker.send_group(signal.SIGTERM)
    assert worker.ended() == 0
    assert fleet.state(job_id) is State.SUCCEEDED, worker.log
    assert fleet.record.steps(job_id) == ["start", "end"]


@pytest.mark.requirement("S4.11", "P7")
@pytest.mark.either_store
def test_a_signal_at_any_moment_of_the_start_leaves_nothing_leased(fleet: Fleet) -> None:
    ids = [fleet_app.sleeper.enqueue(0.2).id for _ in range(5)]
    for step in range(8):
        worker = fleet.start("--concurrency", "2", "--shutdown-grace-seconds", "0")
        _wait(0.08 * step)
        code = worker.drain()
        # Before Freehold has started, Python itself handles the signal.
        assert code == 0 or (code == -signal.SIGTERM and "starts" not in worker.log), worker.log
        assert fleet.nothing_leased()
    for job_id in ids:
        job = fleet.job(job_id)
        started = bool(fleet.record.starts(job_id))
        assert job.attempt == (job.state is State.SUCCEEDED)
        assert started or job.attempt == 0


def _wait(seconds: float) -> None:
    """Without synchronisation: the signal should arrive at any moment."""
    deadline = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= deadline)


@pytest.mark.requirement("S4.11", "P13")
@pytest.mark.either_store
def test_a_part_that_crashes_ends_the_worker_with_70_and_gives_back_its_jobs(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = fleet_app.sleeper.enqueue(60.0).id

    def chance() -> float:
        """Raises in the sweeper once a job has started."""
        task = asyncio.current_task()
        if task is not None and task.get_name() == "sweeper" and fleet.record.starts(job_id):
            raise ZeroDivisionError("a bug in a part")
        return 0.5

    async def run() -> int:
        settings = WorkerSettings(lease_timeout_seconds=2.0, shutdown_grace_seconds=300.0)
        worker = Worker(fleet.app._database, fleet.app.tasks, settings, chance=chance)
        try:
            return await worker.run()
        finally:
            await fleet.app._database.aclose()

    assert asyncio.run(run()) == EXIT_CRASHED
    assert re.search(r"the sweeper crashed: ZeroDivisionError\('a bug in a part'\)", caplog.text)
    assert fleet.nothing_leased()
    assert _facts(fleet.job(job_id)) == (State.QUEUED, 0, "its worker was shut down")
