"""Tasks that a claimer does not know: out of the way, kept, uncharged, and back in time."""

from __future__ import annotations

import pytest

from freehold.model.history import EventKind
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from tests.stores import StoreUnderTest

KNOWN = frozenset({"known"})


@pytest.mark.requirement("P4")
def test_a_worker_never_claims_a_task_it_does_not_know(store: StoreUnderTest) -> None:
    strange = [store.add(task="strange", priority=9) for _ in range(30)]
    known = store.add(task="known")
    assert [a.job_id for a in store.claim(count=1, tasks=KNOWN)] == [known]
    jobs = store.store.read(strange).values()
    assert {(job.state, job.attempt, job.lease) for job in jobs} == {("queued", 0, None)}


@pytest.mark.requirement("P4")
def test_a_parked_job_is_shown_as_such(store: StoreUnderTest) -> None:
    job_id = store.add(task="strange")
    assert store.claim(tasks=KNOWN) == []
    assert store.job(job_id).reason == "the claiming worker does not know this task"
    assert (store.store.counts().parked, store.store.counts().ready) == (1, 0)
    event = store.store.events(job_id)[-1]
    assert (event.kind, event.state, event.by) == (EventKind.PARKED, "queued", "w1")
    assert event.token is None


@pytest.mark.requirement("P4", "P12")
def test_a_parked_job_is_no_depth(store: StoreUnderTest) -> None:
    store.add(task="strange")
    store.claim(tasks=KNOWN)
    assert store.store.depth(["default"]) == 0
    assert store.claim(tasks=frozenset({"strange"})) == []


@pytest.mark.requirement("P4")
def test_it_comes_back_when_a_worker_that_knows_it_appears(store: StoreUnderTest) -> None:
    job_id, other = store.add(task="strange"), store.add(task="stranger")
    store.claim(tasks=KNOWN)
    assert store.store.unpark(["strange", "known"], 10) == 1
    assert store.store.unpark(["strange", "known"], 10) == 0
    assert store.job(job_id).reason is None
    attempt = store.claim_one("w2", tasks=frozenset({"strange"}))
    assert (attempt.job_id, attempt.number) == (job_id, 1)
    assert store.store.events(job_id)[-1].kind is EventKind.UNPARKED
    assert store.job(other).reason is not None


@pytest.mark.requirement("P4")
def test_unparking_is_bounded_and_records_only_the_jobs_it_moved(store: StoreUnderTest) -> None:
    for _ in range(5):
        store.add(task="strange")
    store.claim(tasks=KNOWN)
    assert store.store.unpark(["strange"], 2) == 2
    recorded = store.sql("select count(*) from {s}event where kind = 'unparked'")
    assert recorded == [(2,)]
    moved = store.sql(
        "select count(*) from {s}job j where stage <> {parked} "
        "and exists (select 1 from {s}event e where e.job_id = j.id and e.kind = 'unparked')"
    )
    assert moved == [(2,)]
    assert [store.store.unpark(["strange"], 2) for _ in range(3)] == [2, 1, 0]


@pytest.mark.requirement("P4", "S4.3")
def test_no_job_overtakes_a_parked_one_in_its_lane(store: StoreUnderTest) -> None:
    first = store.add(task="strange", target="lane")
    second = store.add(task="known", target="lane")
    assert store.claim(tasks=KNOWN) == []
    assert store.claim(tasks=KNOWN) == []
    store.store.unpark(["strange"], 10)
    attempt = store.claim_one()
    assert attempt.job_id == first
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.claim_one(tasks=KNOWN).job_id == second


@pytest.mark.requirement("P4", "S0.1")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_parked_job_can_be_paused_resumed_and_canceled(
    store: StoreUnderTest, target: str | None
) -> None:
    job_id = store.add(task="strange", target=target)
    store.claim(tasks=KNOWN)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    assert store.state(job_id) == "paused"
    assert store.store.unpark(["strange"], 10) == 0
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    assert store.state(job_id) == "queued"
    store.claim(tasks=KNOWN)
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.state(job_id) == "canceled"


@pytest.mark.requirement("P4")
def test_a_claimer_that_knows_everything_parks_nothing(store: StoreUnderTest) -> None:
    job_id = store.add(task="strange")
    assert store.claim_one(tasks=None).job_id == job_id
