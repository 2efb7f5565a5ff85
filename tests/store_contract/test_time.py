"""Due times: by the database's clock alone, to the microsecond, in bounded batches."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from tests.stores import StoreUnderTest, key_of

MICROSECOND = 0.000001


@pytest.mark.requirement("S1.1", "P11")
@pytest.mark.parametrize("by", ["run_at", "delay_seconds"])
def test_nothing_runs_before_its_time(store: StoreUnderTest, by: str) -> None:
    due_at = store.now() + timedelta(seconds=60)
    fields = {"run_at": due_at} if by == "run_at" else {"delay_seconds": 60.0}
    job_id = store.add(**fields)
    assert store.job(job_id).run_at == due_at
    store.advance(60.0 - MICROSECOND)
    assert (store.store.make_ready(10), store.claim()) == (0, [])
    store.advance(MICROSECOND)
    assert store.store.make_ready(10) == 1
    assert store.claim_one().job_id == job_id


@pytest.mark.requirement("S0.4", "P11")
def test_a_time_means_the_same_in_every_zone(store: StoreUnderTest) -> None:
    zone = timezone(timedelta(hours=-9, minutes=-30))
    due_at = (store.now() + timedelta(seconds=60)).astimezone(zone)
    job = store.job(store.add(run_at=due_at))
    assert job.run_at == due_at
    assert job.run_at.utcoffset() == timedelta(0)


@pytest.mark.requirement("S1.1")
def test_a_time_that_has_passed_is_at_once(store: StoreUnderTest) -> None:
    job_id = store.add(run_at=store.now() - timedelta(days=1))
    now_id = store.add(run_at=store.now())
    assert [attempt.job_id for attempt in store.claim()] == [job_id, now_id]


@pytest.mark.requirement("S0.14")
def test_a_job_that_became_due_stands_by_its_creation_not_its_time(store: StoreUnderTest) -> None:
    late, early, plain = store.add(delay_seconds=9), store.add(delay_seconds=5), store.add()
    store.advance(10.0)
    assert store.store.make_ready(10) == 2
    assert [attempt.job_id for attempt in store.claim()] == [late, early, plain]


@pytest.mark.requirement("S1.1")
def test_due_jobs_become_ready_in_bounded_batches_earliest_first(
    store: StoreUnderTest,
) -> None:
    third, first, second = (store.add(delay_seconds=n) for n in (3, 1, 2))
    store.advance(10.0)
    assert store.store.make_ready(2) == 2
    assert sorted(attempt.job_id for attempt in store.claim()) == [first, second]
    assert [store.store.make_ready(2), store.store.make_ready(2)] == [1, 0]
    assert store.claim_one().job_id == third


def test_how_long_until_the_next_is_known(store: StoreUnderTest) -> None:
    assert store.store.sweep_check(()).due_seconds is None
    store.add()
    store.add(pending=True, delay_seconds=1.0)
    assert store.store.sweep_check(()).due_seconds is None
    store.add(delay_seconds=90.0)
    store.add(delay_seconds=30.5)
    assert store.store.sweep_check(()).due_seconds == 30.5
    store.advance(100.0)
    assert store.store.sweep_check(()).due_seconds == 0.0
    store.store.make_ready(10)
    assert store.store.sweep_check(()).due_seconds is None


@pytest.mark.requirement("S2.7")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_retry_is_something_to_wait_for(store: StoreUnderTest, target: str | None) -> None:
    store.add(target=target)
    assert store.end(store.claim_one(), OutcomeKind.RETRY_LATER, delay_seconds=12.0)
    assert store.store.sweep_check(()).due_seconds == 12.0


@pytest.mark.requirement("S1.1")
def test_pausing_a_scheduled_job_does_not_make_it_early(store: StoreUnderTest) -> None:
    job_id = store.add(delay_seconds=60.0)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert store.claim() == []
    store.advance(60.0)
    store.store.make_ready(10)
    assert store.claim_one().job_id == job_id


@pytest.mark.requirement("S1.1")
def test_a_paused_job_sleeps_through_its_time(store: StoreUnderTest) -> None:
    job_id = store.add(delay_seconds=60.0)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    store.advance(120.0)
    assert (store.store.make_ready(10), store.claim()) == (0, [])
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert store.claim_one().job_id == job_id


@pytest.mark.requirement("P11", "S0.4")
def test_every_time_in_the_store_is_the_stores_own(store: StoreUnderTest) -> None:
    """The tests' clock is years from this machine's: any other source would show."""
    store.add()
    store.advance(5.0)
    attempt = store.claim_one()
    store.store.mark_running("w1", [key_of(attempt)])
    store.store.renew("w1", [key_of(attempt)], 30.0)
    store.store.operate(OperatorVerb.PAUSE, [attempt.job_id], "ann", None)
    store.store.pause_queue("default", "ann", None, None)
    lease = store.job(attempt.job_id).lease
    assert lease is not None
    assert {lease.leased_at, lease.started_at, lease.heartbeat_at} == {store.now()}
    assert {queue.paused_at for queue in store.store.queues()} == {store.now()}
    assert store.end(attempt, OutcomeKind.SUCCESS)
    report = store.job(attempt.job_id).report
    assert report is not None
    assert report.finished_at == store.now()
    assert {event.at for event in store.store.events(attempt.job_id)} == {store.now()}
