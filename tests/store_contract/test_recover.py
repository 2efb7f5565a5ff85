"""Recovery after a crash: by the lease alone, under the same policy, any number at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from freehold.model.history import EventKind
from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.store.statements import StatementGroup, Verb
from freehold.store.verbs.recover import recover
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

STEADY = Policy(retry=Retry(base_seconds=2.0, factor=3.0, jitter=0.0))


def lose(store: StoreUnderTest) -> Attempt:
    """A worker claims a job and is never heard of again."""
    attempt = store.claim_one()
    store.advance(LEASE_SECONDS)
    return attempt


@pytest.mark.requirement("S0.7", "S0.9", "S0.19")
def test_a_job_comes_back_when_its_worker_does_not(store: StoreUnderTest) -> None:
    job_id = store.add()
    lost = lose(store)
    recovered = store.store.recover(10, 0.0)
    assert [each.attempt for each in recovered] == [lost]
    job = store.job(job_id)
    assert (job.state, job.lease, job.lost_attempts) == ("queued", None, 1)
    store.advance(3600.0)
    store.store.make_ready(10)
    again = store.claim_one("w2")
    assert (again.job_id, again.number, again.lost_attempts) == (job_id, 2, 1)


@pytest.mark.requirement("S0.7")
def test_a_living_lease_is_left_alone(store: StoreUnderTest) -> None:
    store.add()
    store.claim_one()
    store.advance(LEASE_SECONDS - 0.000001)
    before = store.everything()
    assert store.store.recover(10, 0.0) == []
    assert store.everything() == before


@pytest.mark.requirement("S0.8")
def test_a_second_recovery_finds_nothing(store: StoreUnderTest) -> None:
    store.add()
    lose(store)
    assert len(store.store.recover(10, 0.0)) == 1
    before = store.everything()
    assert store.store.recover(10, 0.0) == []
    assert store.everything() == before


@pytest.mark.requirement("S0.8", "S0.13")
def test_sweepers_at_once_charge_each_job_once(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(20)]
    store.claim()
    store.advance(LEASE_SECONDS)
    barrier = Barrier(4)

    def sweep(_: int) -> list[int]:
        barrier.wait()
        return [each.attempt.job_id for each in store.store.recover(100, 0.5)]

    with ThreadPoolExecutor(4) as pool:
        recovered = [job_id for part in pool.map(sweep, range(4)) for job_id in part]
    assert sorted(recovered) == jobs
    stored = store.store.read(jobs).values()
    assert {(job.state, job.attempt, job.lost_attempts) for job in stored} == {("queued", 1, 1)}
    assert len(store.sql("select id from {s}event")) == len(jobs)


@pytest.mark.requirement("S3.1")
def test_recovery_is_bounded_and_returns_what_it_recovered(store: StoreUnderTest) -> None:
    jobs = [store.add(queue=f"q{n % 2}") for n in range(5)]
    store.claim(queue="q0")
    store.claim(queue="q1")
    store.advance(LEASE_SECONDS)
    sizes, seen = [], []
    while recovered := store.store.recover(2, 0.0):
        sizes.append(len(recovered))
        seen += [each.attempt.job_id for each in recovered]
    assert sizes == [2, 2, 1]
    assert sorted(seen) == jobs


@pytest.mark.requirement("S3.3", "P3")
@pytest.mark.parametrize("started", [True, False], ids=["running", "assigned"])
def test_a_lost_lease_is_a_failed_attempt_with_its_backoff(
    store: StoreUnderTest, started: bool
) -> None:
    job_id = store.add(policy=STEADY)
    attempt = store.claim_one()
    if started:
        store.store.mark_running("w1", [key_of(attempt)])
    store.advance(LEASE_SECONDS)
    store.store.recover(10, 0.0)
    job = store.job(job_id)
    assert (job.state, job.attempt) == ("queued", 1)
    assert job.run_at == store.now() + timedelta(seconds=2)
    assert store.claim() == []


@pytest.mark.requirement("S3.3", "P7")
def test_a_job_that_kills_every_worker_ends_as_failed(store: StoreUnderTest) -> None:
    job_id = store.add(policy=STEADY, max_attempts=2)
    lose(store)
    store.store.recover(10, 0.0)
    store.advance(60.0)
    store.store.make_ready(10)
    lose(store)
    store.store.recover(10, 0.0)
    job = store.job(job_id)
    assert (job.state, job.attempt, job.lost_attempts) == ("failed", 2, 2)
    assert job.reason == "its worker was lost 2 times"
    store.advance(3600.0)
    assert (store.store.make_ready(10), store.claim()) == (0, [])


@pytest.mark.requirement("S4.9")
def test_a_policy_can_fail_a_job_that_lost_its_worker(store: StoreUnderTest) -> None:
    job_id = store.add(policy=Policy(on_lease_expired="fail"), max_attempts=9)
    lose(store)
    store.store.recover(10, 0.0)
    assert store.state(job_id) == "failed"
    assert store.claim() == []
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert store.claim_one().job_id == job_id


@pytest.mark.requirement("S2.5", "S3.3")
def test_the_events_record_that_the_worker_was_lost(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = lose(store)
    store.store.recover(10, 0.0)
    event = store.store.events(job_id)[-1]
    assert (event.kind, event.by, event.token) == (EventKind.LEASE_LOST, "w1", attempt.token)
    assert (event.reason, event.attempt, event.state) == ("its worker was lost", 1, "queued")
    assert event.due_at == store.job(job_id).run_at


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("verb", "state"), [(OperatorVerb.CANCEL, "canceled"), (OperatorVerb.PAUSE, "paused")]
)
def test_a_request_survives_the_worker_it_was_for(
    store: StoreUnderTest, verb: OperatorVerb, state: str
) -> None:
    job_id = store.add()
    store.claim_one()
    store.store.operate(verb, [job_id], "ann", "stop it")
    store.advance(LEASE_SECONDS)
    store.store.recover(10, 0.0)
    assert store.state(job_id) == state
    assert store.job(job_id).lost_attempts == 1


def read_first(store: StoreUnderTest, steps: Verb[object]) -> StatementGroup:
    """Run a verb until it is about to write, and let it freeze there."""
    group = next(steps)
    while not group.writes:
        group = steps.send(store.store.session.execute(group))
    return group


@pytest.mark.requirement("P10", "S0.8")
@pytest.mark.parametrize("meanwhile", ["recovered", "taken", "finished"])
def test_a_sweeper_that_froze_before_its_write_changes_nothing(
    store: StoreUnderTest, meanwhile: str
) -> None:
    store.add(policy=Policy(retry=Retry(base_seconds=0.0)))
    lose(store)
    steps = recover(10, 0.0)
    group = read_first(store, steps)
    # It holds no lock: everybody else goes on.
    assert len(store.store.recover(10, 0.0)) == 1
    if meanwhile != "recovered":
        attempt = store.claim_one("w2")
        if meanwhile == "finished":
            assert store.end(attempt, OutcomeKind.SUCCESS)
    before = store.everything()
    with pytest.raises(StopIteration) as end:
        steps.send(store.store.session.execute(group))
    assert end.value.value == []
    assert store.everything() == before


@pytest.mark.requirement("P10", "P2")
def test_a_request_between_the_sweepers_read_and_write_is_obeyed(
    store: StoreUnderTest,
) -> None:
    job_id = store.add()
    lose(store)
    steps = recover(10, 0.0)
    group = read_first(store, steps)
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    group = steps.send(store.store.session.execute(group))
    with pytest.raises(StopIteration):
        steps.send(store.store.session.execute(group))
    assert store.state(job_id) == "canceled"


@pytest.mark.requirement("S0.7")
def test_the_leases_of_a_dead_owner_end_at_once_and_those_of_others_do_not(
    store: StoreUnderTest,
) -> None:
    for _ in range(3):
        store.add()
    store.claim("dead", 2)
    other = store.claim_one("alive")
    assert store.store.recover(10, 0.0) == []
    assert store.store.expire_leases("dead") == 2
    assert store.store.expire_leases("dead") == 0, "an expired lease is no lease"
    recovered = store.store.recover(10, 0.0)
    assert [(each.attempt.owner, each.attempt.number) for each in recovered] == [("dead", 1)] * 2
    assert {store.job(each.attempt.job_id).lost_attempts for each in recovered} == {1}
    assert store.end(other, OutcomeKind.SUCCESS)


@pytest.mark.requirement("S3.1")
def test_the_leases_of_all_workers_of_a_dead_host_end_and_no_others(store: StoreUnderTest) -> None:
    owners = ("w1", "w1.1", "w1.a2", "w12", "w12.1", "W1.1", "w")
    for owner in owners:
        store.add()
        store.claim_one(owner)
    assert store.store.expire_leases("w1") == 3
    recovered = store.store.recover(10, 0.0)
    assert sorted(each.attempt.owner for each in recovered) == ["w1", "w1.1", "w1.a2"]
