"""Jobs that a worker cannot run wait or fail with a reason; none is lost, none is charged."""

from __future__ import annotations

import pytest

from freehold import NewJob
from freehold.model.history import EventKind
from freehold.model.state import Stage, State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually


@pytest.mark.requirement("P4", "S2.5")
@pytest.mark.either_store
def test_a_task_that_no_worker_knows_waits_until_one_does(fleet: Fleet) -> None:
    fleet.start()
    unknown = fleet.app._submit(NewJob(task="newcomer", args=b'{"value": 7}')).id
    known = [fleet_app.quick.enqueue().id for _ in range(5)]
    for job_id in known:
        fleet.succeeded(job_id)
    eventually(lambda: fleet.job(unknown).stage is Stage.PARKED)
    job = fleet.job(unknown)
    assert (job.state, job.attempt, job.lease) == (State.QUEUED, 0, None)
    assert fleet.app.operator.counts().parked == 1
    cause = fleet.app.operator.explain(unknown)[0]
    assert (cause.code, cause.text) == (
        "unknown_task",
        "a worker of its queue does not know the task newcomer",
    )

    fleet.start(app="newer")
    job = fleet.succeeded(unknown)
    assert job.report is not None
    assert (job.attempt, job.report.result) == (1, 7)
    assert len(fleet.record.starts(unknown)) == 1
    assert fleet.events(unknown)[:2] == [EventKind.PARKED, EventKind.UNPARKED]


@pytest.mark.requirement("P4", "S2.5")
@pytest.mark.parametrize("target", [None, "scales"])
@pytest.mark.either_store
def test_arguments_that_do_not_fit_wait_for_a_worker_whose_code_fits(
    fleet: Fleet, target: str | None
) -> None:
    """As in a rolling deploy: an older worker runs beside a newer one."""
    fleet.start()
    new = NewJob(task="weigh", args=b'{"grams": "heavy"}', max_attempts=1, target=target)
    job_id = fleet.app._submit(new).id
    eventually(lambda: fleet.job(job_id).stage is Stage.PARKED)
    job = fleet.job(job_id)
    assert (job.state, job.attempt, job.lease) == (State.QUEUED, 0, None)
    cause = fleet.app.operator.explain(job_id)[0]
    assert cause.code == "misfit"
    assert cause.text.startswith(
        "it waits for a worker whose code fits (at most 3600 s): its arguments cannot be decoded: "
        "task weigh: Expected `int`"
    )
    assert cause.text.endswith("it takes (grams: int)")
    fleet.start(app="newer")
    job = fleet.succeeded(job_id)
    assert job.report is not None
    assert (job.attempt, job.report.result) == (1, "heavy")
    assert fleet.events(job_id)[0] == EventKind.PARKED


@pytest.mark.requirement("P4")
@pytest.mark.either_store
def test_a_worker_until_idle_ends_though_a_misfit_waits(fleet: Fleet) -> None:
    job_id = fleet.app._submit(NewJob(task="weigh", args=b'{"grams": "heavy"}')).id
    for _ in range(2):
        assert fleet.start("--until-idle").ended() == 0
        assert fleet.job(job_id).stage is Stage.PARKED
    assert fleet.events(job_id) == [EventKind.PARKED]
    assert fleet.start("--until-idle", app="newer").ended() == 0
    assert fleet.state(job_id) is State.SUCCEEDED


@pytest.mark.requirement("S2.5", "S2.6")
@pytest.mark.either_store
def test_arguments_that_no_code_fits_fail_with_the_reason_until_the_code_fits(
    fleet: Fleet,
) -> None:
    worker = fleet.start(environment={"FREEHOLD_WORKERS_MISFIT_SECONDS": "0.1"})
    job_id = fleet.app._submit(NewJob(task="weigh", args=b'{"grams": "heavy"}')).id
    job = fleet.until(job_id, State.FAILED)
    assert fleet.events(job_id) == [EventKind.PARKED, EventKind.UNPARKED, EventKind.FAILED]
    assert job.reason is not None
    assert job.reason.startswith("its arguments cannot be decoded: task weigh: Expected `int`")
    assert job.report is not None
    assert job.report.error is not None
    assert job.report.error.type == "freehold.errors.BadArguments"
    assert worker.drain() == 0

    fleet.start(app="newer")
    assert fleet.app.operator.retry(job_id, by="ann")[0].status == "done"
    job = fleet.succeeded(job_id)
    assert job.report is not None
    assert job.report.result == "heavy"


@pytest.mark.requirement("P4")
@pytest.mark.either_store
def test_a_worker_until_idle_runs_parked_jobs_too(fleet: Fleet) -> None:
    """Parked by a worker that did not know the task; they come back a few at a time."""
    jobs = [fleet.app._submit(NewJob(task="newcomer", args=b'{"value": 7}')).id for _ in range(40)]
    assert fleet.start("--until-idle").ended() == 0
    assert fleet.app.operator.counts().parked == len(jobs)
    assert fleet.log.count("warning freehold: this worker does not know the task newcomer") == 1
    assert fleet.start("--until-idle", app="newer").ended() == 0
    assert {fleet.state(job_id) for job_id in jobs} == {State.SUCCEEDED}
