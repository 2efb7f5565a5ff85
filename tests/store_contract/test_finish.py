"""What each ending leads to: the state, the cleared lease, the budget, the report."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.model.history import EventKind
from freehold.model.job import Attempt, ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.store.types import AttemptEnd
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

STEADY = Policy(retry=Retry(base_seconds=2.0, factor=3.0, cap_seconds=10.0, jitter=0.0))
CHARGED = (OutcomeKind.ERROR, OutcomeKind.TIMEOUT, OutcomeKind.RETRY_LATER)
REFUNDED = (OutcomeKind.SNOOZE, OutcomeKind.DRAIN, OutcomeKind.GIVE_BACK)


def claim_again(store: StoreUnderTest) -> Attempt:
    """After whatever backoff there was."""
    store.advance(3600.0)
    store.store.make_ready(10)
    return store.claim_one()


@pytest.mark.requirement("S0.1")
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (OutcomeKind.SUCCESS, "succeeded"),
        (OutcomeKind.FAIL, "failed"),
        (OutcomeKind.CANCEL, "canceled"),
        (OutcomeKind.PAUSE, "paused"),
        (OutcomeKind.SNOOZE, "queued"),
        (OutcomeKind.DRAIN, "queued"),
        (OutcomeKind.GIVE_BACK, "queued"),
        (OutcomeKind.ERROR, "queued"),
        (OutcomeKind.TIMEOUT, "queued"),
        (OutcomeKind.RETRY_LATER, "queued"),
    ],
)
@pytest.mark.parametrize("started", [True, False], ids=["running", "assigned"])
@pytest.mark.requirement("S4.10", "P3")
def test_every_outcome_leads_where_the_state_machine_says(
    store: StoreUnderTest, kind: OutcomeKind, state: str, started: bool
) -> None:
    store.add()
    attempt = store.claim_one()
    if started:
        store.store.mark_running("w1", [key_of(attempt)])
    assert store.end(attempt, kind)
    assert store.state(attempt.job_id) == state


@pytest.mark.requirement("S0.16", "S0.19")
@pytest.mark.parametrize("kind", OutcomeKind)
@pytest.mark.parametrize("target", [None, "lane"])
def test_no_ending_leaves_anything_of_the_lease(
    store: StoreUnderTest, kind: OutcomeKind, target: str | None
) -> None:
    store.add(target=target)
    attempt = store.claim_one()
    store.store.mark_running("w1", [key_of(attempt)])
    store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS)
    assert store.end(attempt, kind)
    leftovers = store.sql(
        "select id from {s}job where lease_owner is not null or lease_token is not null "
        "or lease_expires_at is not null or leased_at is not null or heartbeat_at is not null "
        "or started_at is not null or stop_request is not null or stop_requested_by is not null"
    )
    assert leftovers == []
    assert store.job(attempt.job_id).lease is None


@pytest.mark.requirement("S2.6", "S2.7")
def test_waits_grow_up_to_their_cap(store: StoreUnderTest) -> None:
    job_id = store.add(policy=STEADY, max_attempts=9)
    for number, wait in ((1, 2.0), (2, 6.0), (3, 10.0), (4, 10.0)):
        attempt = store.claim_one()
        assert attempt.number == number
        assert store.end(attempt, OutcomeKind.ERROR)
        assert store.job(job_id).run_at == store.now() + timedelta(seconds=wait)
        store.advance(wait)
        assert store.store.make_ready(10) == 1


@pytest.mark.requirement("S2.6")
def test_chance_spreads_the_wait(store: StoreUnderTest) -> None:
    job_id = store.add(policy=Policy(retry=Retry(base_seconds=100.0, jitter=0.5)))
    attempt = store.claim_one()
    outcome = Outcome(kind=OutcomeKind.ERROR)
    store.store.finish("w1", [AttemptEnd(attempt, outcome, chance=0.5)])
    assert store.job(job_id).run_at == store.now() + timedelta(seconds=75)


@pytest.mark.requirement("S2.7")
def test_a_retry_waits_its_time_and_counts_no_attempt_of_its_own(store: StoreUnderTest) -> None:
    job_id = store.add(policy=STEADY)
    assert store.end(store.claim_one(), OutcomeKind.ERROR)
    job = store.job(job_id)
    assert (job.state, job.attempt) == ("queued", 1)
    store.advance(1.999999)
    assert (store.store.make_ready(10), store.claim()) == (0, [])
    store.advance(0.000001)
    assert store.store.make_ready(10) == 1
    assert store.claim_one().number == 2


@pytest.mark.requirement("S4.10", "S2.7")
@pytest.mark.parametrize("kind", [OutcomeKind.RETRY_LATER, OutcomeKind.SNOOZE])
def test_a_handler_can_name_the_wait_itself(store: StoreUnderTest, kind: OutcomeKind) -> None:
    job_id = store.add()
    assert store.end(store.claim_one(), kind, delay_seconds=90.5)
    assert store.job(job_id).run_at == store.now() + timedelta(seconds=90.5)
    assert store.claim() == []


@pytest.mark.requirement("P7", "S2.6")
@pytest.mark.parametrize("kind", CHARGED)
def test_the_last_failed_attempt_is_the_last(store: StoreUnderTest, kind: OutcomeKind) -> None:
    job_id = store.add(max_attempts=3)
    for _ in range(3):
        assert store.state(job_id) == "queued"
        assert store.end(claim_again(store), kind)
    job = store.job(job_id)
    assert (job.state, job.attempt) == ("failed", 3)
    assert job.reason is not None
    assert "3 of 3" in job.reason


@pytest.mark.requirement("P7", "S4.10")
@pytest.mark.parametrize("kind", REFUNDED)
def test_an_end_that_is_not_the_jobs_fault_is_never_charged(
    store: StoreUnderTest, kind: OutcomeKind
) -> None:
    job_id = store.add(max_attempts=1)
    for _ in range(5):
        attempt = claim_again(store)
        assert attempt.number == 1
        assert store.end(attempt, kind)
        assert store.job(job_id).attempt == 0
    assert store.end(claim_again(store), OutcomeKind.SUCCESS)


@pytest.mark.requirement("P7", "S4.10")
def test_a_pause_is_not_charged(store: StoreUnderTest) -> None:
    job_id = store.add()
    assert store.end(store.claim_one(), OutcomeKind.PAUSE, reason="needs a look")
    job = store.job(job_id)
    assert (job.state, job.attempt, job.reason) == ("paused", 0, "needs a look")


@pytest.mark.requirement("S4.10", "S2.6")
def test_a_handler_can_fail_its_job_without_a_retry(store: StoreUnderTest) -> None:
    spent = store.add(max_attempts=9)
    assert store.end(store.claim_one(), OutcomeKind.FAIL, reason="budget spent")
    hopeless = store.add(max_attempts=9)
    assert store.end(store.claim_one(), OutcomeKind.ERROR, retryable=False)
    assert (store.state(spent), store.state(hopeless)) == ("failed", "failed")
    assert store.job(spent).reason == "budget spent"


@pytest.mark.requirement("P3")
def test_an_assigned_job_can_succeed_without_a_start(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one()
    store.advance(0.2)
    assert store.end(attempt, OutcomeKind.SUCCESS, result=b'{"n": 1}', ran_seconds=0.15)
    report = store.job(attempt.job_id).report
    assert report is not None
    assert report.started_at == store.now() - timedelta(seconds=0.15)
    assert report.ran_seconds == pytest.approx(0.15)


@pytest.mark.requirement("S2.5")
def test_a_success_leaves_a_report(store: StoreUnderTest) -> None:
    created_at = store.now()
    store.add()
    store.advance(2.0)
    attempt = store.claim_one()
    leased_at = store.now()
    store.advance(1.0)
    store.store.mark_running("w1", [key_of(attempt)])
    store.advance(4.0)
    assert store.end(attempt, OutcomeKind.SUCCESS, result=b'{"sent": [1, 2]}')
    job = store.job(attempt.job_id)
    report = job.report
    assert report is not None
    assert (report.state, report.attempts, report.finished_by) == ("succeeded", 1, "w1")
    assert (report.result, report.error, report.token) == ({"sent": [1, 2]}, None, attempt.token)
    assert (job.created_at, report.leased_at) == (created_at, leased_at)
    assert (report.waited_seconds, report.ran_seconds) == (3.0, 4.0)
    assert report.finished_at == store.now()


@pytest.mark.requirement("S2.5")
def test_a_failure_leaves_its_error(store: StoreUnderTest) -> None:
    store.add(max_attempts=1)
    error = ErrorInfo("ValueError", "no such box ✗", "line 1\nline 2")
    attempt = store.claim_one()
    assert store.end(attempt, OutcomeKind.ERROR, error=error)
    report = store.job(attempt.job_id).report
    assert report is not None
    assert (report.state, report.error, report.result) == ("failed", error, None)
    event = store.store.events(attempt.job_id)[-1]
    assert (event.kind, event.error, event.token) == (EventKind.FAILED, error, attempt.token)


@pytest.mark.requirement("S0.12")
def test_a_mixed_group_of_ends_is_decided_one_by_one(store: StoreUnderTest) -> None:
    kinds = (OutcomeKind.SUCCESS, OutcomeKind.ERROR, OutcomeKind.PAUSE, OutcomeKind.FAIL)
    for _ in kinds:
        store.add()
    ended = [AttemptEnd(a, Outcome(kind=k)) for a, k in zip(store.claim(), kinds, strict=True)]
    finished = store.store.finish("w1", ended)
    assert finished.lost == ()
    states = [store.state(end.attempt.job_id) for end in ended]
    assert states == ["succeeded", "queued", "paused", "failed"]
    assert [str(finished.decisions[end.attempt.job_id].state) for end in ended] == states


def test_finishing_nothing_is_no_error(store: StoreUnderTest) -> None:
    finished = store.store.finish("w1", [])
    assert (finished.decisions, finished.lost) == ({}, ())
