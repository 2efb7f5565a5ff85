"""One worker, one job, two leases of it: the ending of the first never becomes that of the second.

Found by chaos: with PostgreSQL away for longer than a lease, a worker can have a job again before
it could write how the first attempt ended, and then write both at once.
"""

from __future__ import annotations

import asyncio

import pytest

from freehold.errors import BadInput
from freehold.model.job import Attempt
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd
from freehold.telemetry import Telemetry
from freehold.worker.finisher import Finisher
from freehold.worker.held_leases import HeldLease, HeldLeases
from freehold.worker.wakeups import Wakeups
from tests.stores import LEASE_SECONDS, StoreUnderTest


def twice(store: StoreUnderTest) -> tuple[Attempt, Attempt]:
    store.add()
    first = store.claim_one()
    store.advance(LEASE_SECONDS + 0.001)
    store.store.recover(10, 0.0)
    store.advance(3600.0)
    store.store.make_ready(10)
    return first, store.claim_one()


def success(attempt: Attempt, result: bytes) -> AttemptEnd:
    return AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS, result=result, ran_seconds=0.0))


@pytest.mark.requirement("S0.3", "S3.4")
@pytest.mark.parametrize("stale_first", [True, False])
def test_a_worker_that_has_both_writes_the_right_one(
    store: StoreUnderTest, stale_first: bool
) -> None:
    first, second = twice(store)
    endings = [success(first, b'"stale"'), success(second, b'"right"')]
    telemetry = Telemetry()

    async def write_both() -> None:
        finisher = Finisher(store.awaited, "w1", HeldLeases(), telemetry, Wakeups(), lambda: 0.5)
        for ended in endings if stale_first else reversed(endings):
            lease = HeldLease(ended.attempt, asyncio.get_running_loop().time() + 60)
            finisher.submit(lease, ended.outcome)
        running = asyncio.create_task(finisher.run())
        await finisher.flushed()
        running.cancel()
        await store.database.aclose()

    asyncio.run(write_both())
    job = store.job(first.job_id)
    assert job.report is not None
    assert (job.report.result, job.report.token) == ("right", second.token)
    assert store.sql("select count(*) from {s}history") == [(1,)]
    assert (telemetry.total("finished"), telemetry.total("stale_writes")) == (1, 1)


def test_two_endings_of_one_job_in_a_call_are_refused(store: StoreUnderTest) -> None:
    first, second = twice(store)
    before = store.everything()
    with pytest.raises(BadInput, match="one after the other"):
        store.store.finish("w1", [success(first, b"1"), success(second, b"2")])
    assert store.everything() == before
