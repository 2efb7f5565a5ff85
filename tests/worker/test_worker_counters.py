"""The counters of a worker, and its reaction to leases that are taken from it."""

from __future__ import annotations

import asyncio

import pytest

from freehold import NewJob
from freehold.model.state import State
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.telemetry import Telemetry
from tests.worker import fleet_app
from tests.worker.fleet import Fleet
from tests.worker.in_loop_worker import run, until, working

_STEAL = "update {{s}}job set lease_owner = 'thief', lease_token = lease_token + 1000 where id = {}"


@pytest.mark.requirement("S3.8", "S2.5")
@pytest.mark.either_store
def test_endings_are_counted_by_outcome(fleet: Fleet) -> None:
    hows = ("return", "retry_later", "snooze", "pause", "cancel", "fail", "error")
    ids = [fleet_app.ends.enqueue(how).id for how in hows]
    slow = fleet_app.sleeper.using(timeout=0.1, max_attempts=1).enqueue(60.0).id

    async def main() -> Telemetry:
        async with working(fleet) as worker:
            await until(lambda: _all_ended(fleet, [*ids, slow]))
        return worker.telemetry

    counted = run(fleet, main())
    assert {label: n for (name, label), n in counted.counts().items() if name == "finished"} == {
        "success": 4,
        "retry_later": 1,
        "snooze": 1,
        "pause": 1,
        "cancel": 1,
        "fail": 1,
        "error": 1,
        "timeout": 1,
    }
    assert counted.total("claimed") == 11
    assert counted.total("timeouts") == 1
    assert counted.total("retried") >= 2
    for name in ("recovered", "stale_writes", "lost_leases", "loop_blocks", "store_errors"):
        assert (name, counted.total(name)) == (name, 0)


def _all_ended(fleet: Fleet, ids: list[int]) -> bool:
    live = (State.QUEUED, State.ASSIGNED, State.RUNNING)
    return all(job.state not in live for job in fleet.app._client.store.read(ids).values())


@pytest.mark.requirement("S0.5", "S0.6", "S0.17", "S3.8", "S3.4")
def test_a_renewal_that_hits_no_row_stops_the_execution_and_writes_nothing(fleet: Fleet) -> None:
    job_id = fleet_app.sleeper.enqueue(60.0).id

    async def main() -> Telemetry:
        async with working(fleet, lease_timeout_seconds=9.0) as worker:
            await until(lambda: fleet.record.starts(job_id))
            fleet.sql(_STEAL.format(job_id))
            stopped = "stopped: lease_lost, held: False"
            await until(lambda: fleet.record.lines(job_id, stopped))
            await until(lambda: not len(worker.leases))
        return worker.telemetry

    counted = run(fleet, main())
    # By a renewal, which comes after a third of the lease; the lease itself lasts longer.
    start, stop = fleet.record.lines(job_id)
    assert stop.at - start.at < 9.0
    assert (counted.total("lost_leases"), counted.total("finished")) == (1, 0)
    lease = fleet.job(job_id).lease
    assert lease is not None
    assert lease.owner == "thief"


@pytest.mark.requirement("S3.4", "S3.8", "P1")
def test_a_stale_ending_is_refused_and_counted(fleet: Fleet) -> None:
    job_id = fleet_app.sleeper.enqueue(0.3).id

    async def main() -> Telemetry:
        async with working(fleet, lease_timeout_seconds=30.0) as worker:
            await until(lambda: fleet.record.starts(job_id))
            fleet.sql(_STEAL.format(job_id))
            await until(
                lambda: (
                    worker.telemetry.total("stale_writes") + worker.telemetry.total("lost_leases")
                )
            )
        return worker.telemetry

    counted = run(fleet, main())
    assert counted.total("finished") == 0
    lease = fleet.job(job_id).lease
    assert lease is not None
    assert lease.owner == "thief"


@pytest.mark.requirement("S3.2", "S3.8")
def test_recoveries_are_counted(fleet: Fleet) -> None:
    ids = [fleet_app.quick.enqueue().id for _ in range(3)]
    demands = (QueueDemand("default", 3),)
    request = ClaimRequest(owner="gone", lease_seconds=0.5, demands=demands)
    assert len(fleet.app._client.store.claim(request)) == 3

    async def main() -> Telemetry:
        async with working(fleet) as worker:
            await until(lambda: _all_ended(fleet, ids))
        return worker.telemetry

    assert run(fleet, main()).total("recovered") == 3
    assert {fleet.job(job_id).attempt for job_id in ids} == {2}


@pytest.mark.requirement("S0.15")
def test_an_idle_worker_does_not_spin(fleet: Fleet) -> None:
    """With a job that is due later it waits for the time, and does not poll the queue."""
    fleet.app._submit(NewJob(task=fleet_app.quick.name, delay_seconds=3600.0))

    async def main() -> float:
        clock = asyncio.get_running_loop().time
        async with working(fleet) as worker:
            began = clock()
            await asyncio.sleep(3.0)  # at least: the time over which is counted
            return worker.telemetry.total("claims") / (clock() - began)

    assert run(fleet, main()) < 13
