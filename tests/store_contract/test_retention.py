"""Forgetting: what is old and finished goes; nothing else ever does."""

from __future__ import annotations

import pytest

from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from tests.stores import StoreUnderTest

DAY = 24 * 3600.0
KEEP_DAYS = 7.0


def finished(store: StoreUnderTest, kind: OutcomeKind = OutcomeKind.FAIL) -> int:
    store.add()
    attempt = store.claim_one()
    assert store.end(attempt, kind)
    return attempt.job_id


def retain_all(store: StoreUnderTest) -> None:
    while store.store.apply_retention(KEEP_DAYS, 100):
        pass


@pytest.mark.parametrize("prepared", [True, False], ids=["days prepared", "nothing prepared"])
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCESS, OutcomeKind.FAIL, OutcomeKind.CANCEL])
def test_old_finished_jobs_expire(store: StoreUnderTest, kind: OutcomeKind, prepared: bool) -> None:
    if prepared:
        retain_all(store)
    job_id = finished(store, kind)
    store.advance((KEEP_DAYS + 2) * DAY)
    retain_all(store)
    assert store.store.read([job_id]) == {}
    assert store.store.events(job_id) == []


@pytest.mark.parametrize("prepared", [True, False], ids=["days prepared", "nothing prepared"])
def test_recent_finished_jobs_are_kept(store: StoreUnderTest, prepared: bool) -> None:
    if prepared:
        retain_all(store)
    old = finished(store)
    store.advance(3 * DAY)
    young = finished(store)
    store.advance((KEEP_DAYS - 1) * DAY)
    retain_all(store)
    assert set(store.store.read([old, young])) == {young}
    assert [event.kind for event in store.store.events(young)] == ["failed"]


@pytest.mark.requirement("S0.9")
def test_a_live_job_is_never_forgotten_however_old(store: StoreUnderTest) -> None:
    ready, paused, waiting = store.add(), store.add(), store.add(delay_seconds=900 * DAY)
    blocked = store.add(target="lane", queue="lanes")
    assert store.end(store.claim_one(queue="lanes"), OutcomeKind.FAIL)
    store.store.operate(OperatorVerb.PAUSE, [paused], "ann", None)
    store.advance(400 * DAY)
    retain_all(store)
    jobs = store.store.read([ready, paused, waiting, blocked])
    assert [str(jobs[n].state) for n in (ready, paused, waiting, blocked)] == [
        "queued",
        "paused",
        "queued",
        "failed",
    ]
    assert store.claim_one().job_id == ready


def test_retention_continues_after_partitions_were_rotated(store: StoreUnderTest) -> None:
    seen = []
    for _ in range(4):
        retain_all(store)
        seen.append(finished(store, OutcomeKind.SUCCESS))
        store.advance(6 * DAY)
    retain_all(store)
    assert set(store.store.read(seen)) == {seen[-1]}


def test_one_call_forgets_no_more_than_its_limit_of_rows(store: StoreUnderTest) -> None:
    for _ in range(5):
        finished(store, OutcomeKind.SUCCESS)
    store.advance((KEEP_DAYS + 2) * DAY)
    store.store.apply_retention(KEEP_DAYS, 2)
    assert store.sql("select count(*) from {s}history") == [(3,)]
    retain_all(store)
    assert store.sql("select count(*) from {s}history") == [(0,)]


@pytest.mark.requirement("P9")
def test_a_key_is_forgotten_when_its_time_is_over_and_its_job_is_gone(
    store: StoreUnderTest,
) -> None:
    store.store.enqueue([NewJob(task="t", idempotency_key="ended")])
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    live = store.store.enqueue([NewJob(task="t", idempotency_key="live")])[0]
    store.advance(DAY - 1)
    young = store.store.enqueue([NewJob(task="t", idempotency_key="young")])[0]
    store.advance(1)
    retain_all(store)
    assert store.sql("select key from {s}idempotency order by key") == [("live",), ("young",)]
    for key, job in (("live", live), ("young", young)):
        assert store.store.enqueue([NewJob(task="t", idempotency_key=key)])[0].id == job.id
