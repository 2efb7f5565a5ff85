"""Suspended jobs: they wait for their time, hold their lane, and use no lease, limit or attempt."""

from __future__ import annotations

import pytest

from freehold.model.history import EventKind
from freehold.model.job import Attempt
from freehold.model.limit import Limit
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import Stage
from tests.stores import StoreUnderTest


def _suspend(store: StoreUnderTest, attempt: Attempt, seconds: float = 60.0) -> None:
    assert store.end(
        attempt,
        OutcomeKind.SUSPEND,
        reason="sleeps: nap",
        delay_seconds=seconds,
        waits_for="sleep/nap",
    )


@pytest.mark.requirement("N9")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_suspended_job_waits_without_a_lease_and_counts_no_attempt(
    store: StoreUnderTest, target: str | None
) -> None:
    job_id = store.add(target=target)
    _suspend(store, store.claim_one())
    job = store.job(job_id)
    stage = Stage.SCHEDULED if target is None else Stage.BACKOFF
    assert (job.state, job.stage, job.attempt, job.lease) == ("queued", stage, 0, None)
    assert (job.waits_for, job.reason) == ("sleep/nap", "sleeps: nap")
    assert (job.run_at - store.now()).total_seconds() == 60.0
    assert [event.kind for event in store.store.events(job_id)] == [EventKind.SUSPENDED]
    assert store.claim() == []
    store.advance(60.0)
    assert store.store.make_ready(10) == 1
    again = store.claim_one()
    assert (again.job_id, again.number) == (job_id, 1)


@pytest.mark.requirement("N9")
def test_a_suspended_job_keeps_its_lane(store: StoreUnderTest) -> None:
    first, second = store.add(target="lane"), store.add(target="lane")
    _suspend(store, store.claim_one())
    assert store.claim() == []
    store.advance(60.0)
    store.store.make_ready(10)
    attempt = store.claim_one()
    assert attempt.job_id == first
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.claim_one().job_id == second


@pytest.mark.requirement("N9")
def test_a_suspended_job_leaves_its_limit_to_others(store: StoreUnderTest) -> None:
    store.store.set_key_limit("api", Limit(1))
    store.add(limit_key="api")
    other = store.add(limit_key="api")
    attempt = store.claim_one()
    assert store.claim() == []
    _suspend(store, attempt)
    assert store.claim_one().job_id == other


@pytest.mark.requirement("N9")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_cancel_ends_a_suspended_job_at_once(store: StoreUnderTest, target: str | None) -> None:
    job_id = store.add(target=target)
    store.add(target=target)
    _suspend(store, store.claim_one())
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.state(job_id) == "canceled"
    assert store.claim_one().job_id != job_id


def test_a_stop_request_that_came_meanwhile_is_obeyed(store: StoreUnderTest) -> None:
    canceled, paused = store.add(), store.add()
    attempts = store.claim()
    store.store.operate(OperatorVerb.CANCEL, [canceled], "ann", None)
    store.store.operate(OperatorVerb.PAUSE, [paused], "ann", None)
    for attempt in attempts:
        _suspend(store, attempt)
    assert (store.state(canceled), store.state(paused)) == ("canceled", "paused")
    assert store.job(paused).waits_for is None


def test_a_paused_sleeper_runs_at_once_when_it_is_resumed(store: StoreUnderTest) -> None:
    """Its handler finds out how long is left."""
    job_id = store.add()
    _suspend(store, store.claim_one())
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    assert (store.state(job_id), store.job(job_id).waits_for) == ("paused", "sleep/nap")
    store.advance(120.0)
    assert store.store.make_ready(10) == 0
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert store.job(job_id).waits_for is None
    assert store.claim_one().job_id == job_id


def test_what_a_job_waited_for_does_not_outlast_its_next_attempt(store: StoreUnderTest) -> None:
    job_id = store.add()
    _suspend(store, store.claim_one())
    store.advance(60.0)
    store.store.make_ready(10)
    assert store.end(store.claim_one(), OutcomeKind.ERROR)
    job = store.job(job_id)
    assert (job.stage, job.waits_for) == (Stage.SCHEDULED, None)
