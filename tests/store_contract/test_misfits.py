"""Misfits: jobs whose arguments do not fit the code of the worker that claimed them. They are
parked for a worker whose code fits, uncharged, and only for a time."""

from __future__ import annotations

import pytest

from freehold.model.history import EventKind
from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import Stage
from tests.stores import LEASE_SECONDS, StoreUnderTest

HOUR = 3600.0


def park(store: StoreUnderTest, attempt: Attempt, **fields: float) -> bool:
    given = {"delay_seconds": HOUR} | fields
    return store.end(attempt, OutcomeKind.MISFIT, reason="no field d", **given)


def parked(store: StoreUnderTest, **fields: str) -> int:
    job_id = store.add(**fields)
    assert park(store, store.claim_one())
    return job_id


@pytest.mark.requirement("P4", "P7")
def test_a_misfit_waits_parked_and_uncharged(store: StoreUnderTest) -> None:
    job_id = parked(store)
    job = store.job(job_id)
    assert (job.state, job.stage, job.attempt, job.lease) == ("queued", Stage.PARKED, 0, None)
    assert job.reason == "waits for a worker whose code fits (at most 3600 s): no field d"
    event = store.store.events(job_id)[-1]
    assert (event.kind, event.state, event.by) == (EventKind.PARKED, "queued", "w1")
    assert store.store.counts().parked == 1
    assert store.claim() == []


@pytest.mark.requirement("P4")
def test_only_workers_whose_code_fits_make_a_misfit_ready(store: StoreUnderTest) -> None:
    first, second, other = parked(store), parked(store), parked(store, task="other")
    check = store.store.sweep_check(["t"])
    assert (check.parked, check.misfits) == (False, True)
    assert store.store.unpark(["t"], 10) == 0
    found = store.store.misfits(["t"], 0, 10)
    assert [(each.job_id, each.task, each.args) for each in found] == [
        (first, "t", "{}"),
        (second, "t", "{}"),
    ]
    assert [each.job_id for each in store.store.misfits(["t"], first, 10)] == [second]
    assert [each.job_id for each in store.store.misfits(["t", "other"], 0, 1)] == [first]
    assert store.store.unpark_misfits([second, second]) == 1
    assert store.store.unpark_misfits([second]) == 0
    attempt = store.claim_one("w2")
    assert (attempt.job_id, attempt.number, attempt.misfit_time_is_over) == (second, 1, False)
    assert store.store.events(second)[-1].kind is EventKind.UNPARKED
    assert store.job(other).stage is Stage.PARKED


@pytest.mark.requirement("P4")
def test_a_job_of_an_unknown_task_is_no_misfit(store: StoreUnderTest) -> None:
    job_id = store.add(task="strange")
    store.claim(tasks=frozenset({"t"}))
    assert not store.store.sweep_check(["strange"]).misfits
    assert store.store.misfits(["strange"], 0, 10) == []
    assert store.store.unpark_misfits([job_id]) == 0


@pytest.mark.requirement("P4", "S2.5")
def test_the_wait_is_counted_from_the_first_time_that_a_misfit_was_parked(
    store: StoreUnderTest,
) -> None:
    job_id = parked(store)
    store.advance(HOUR / 2)
    store.store.unpark_misfits([job_id])
    assert park(store, store.claim_one("older"))
    store.advance(HOUR / 2 - 0.001)
    assert [each.misfit_time_is_over for each in store.store.misfits(["t"], 0, 10)] == [False]
    store.advance(0.001)
    assert [each.misfit_time_is_over for each in store.store.misfits(["t"], 0, 10)] == [True]
    store.store.unpark_misfits([job_id])
    attempt = store.claim_one("older")
    assert attempt.misfit_time_is_over
    assert park(store, attempt)
    job = store.job(job_id)
    assert (job.state, job.reason) == ("failed", "no field d")


@pytest.mark.requirement("P4")
def test_without_a_time_to_wait_a_misfit_fails_at_once(store: StoreUnderTest) -> None:
    job_id = store.add()
    assert park(store, store.claim_one(), delay_seconds=0.0)
    assert store.state(job_id) == "failed"


@pytest.mark.requirement("P4", "P5")
@pytest.mark.parametrize("target", [None, "lane"])
def test_the_wait_begins_anew_after_an_attempt_or_an_operator(
    store: StoreUnderTest, target: str | None
) -> None:
    fields = {} if target is None else {"target": target}
    job_id = parked(store, **fields)
    store.advance(HOUR)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    attempt = store.claim_one()
    assert not attempt.misfit_time_is_over
    assert park(store, attempt)
    store.store.unpark_misfits([job_id])
    assert store.end(store.claim_one(), OutcomeKind.SNOOZE)
    store.advance(HOUR)
    assert not store.claim_one().misfit_time_is_over


@pytest.mark.requirement("P4", "S4.3")
def test_a_lane_waits_for_its_misfit_and_continues_after_it(store: StoreUnderTest) -> None:
    first = parked(store, target="lane")
    second = store.add(target="lane")
    assert store.claim() == []
    store.store.unpark_misfits([first])
    attempt = store.claim_one()
    assert attempt.job_id == first
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.claim_one().job_id == second


@pytest.mark.requirement("P2")
def test_a_misfit_obeys_a_stop_request(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "wrong year")
    assert park(store, attempt)
    assert store.job(job_id).reason is not None
    assert store.state(job_id) == "canceled"


@pytest.mark.requirement("S3.4", "P1")
def test_a_stale_owner_parks_nothing(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.advance(LEASE_SECONDS)
    before = store.everything()
    assert not park(store, attempt)
    assert store.everything() == before
    assert store.job(job_id).stage is Stage.LEASED
