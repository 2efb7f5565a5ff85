"""One owner, two attempts of one job: it lost the first lease, and got the job a second time.

Where the store was away for longer than a lease, the late end of the first attempt and the end of
the second one can stand in one batch. Only the second one has a lease.
"""

from __future__ import annotations

import pytest

from leasehold.model.job import Attempt
from leasehold.model.note import Progress
from leasehold.model.outcome import Outcome, OutcomeKind
from leasehold.model.state import State
from leasehold.store.contract import Ended, Line, Noted
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

_ORDERS = pytest.mark.parametrize("stale_first", [True, False], ids=["stale first", "stale last"])


def _twice(store: StoreUnderTest) -> tuple[Attempt, Attempt]:
    store.add(max_attempts=5)
    stale = store.claim_one()
    store.advance(LEASE_SECONDS + 1)
    assert len(store.store.recover(10, 0.5)) == 1
    store.advance(3600)
    store.store.make_ready(10)
    return stale, store.claim_one()


def _in_order(stale_first: bool, stale: Ended, current: Ended) -> list[Ended]:
    return [stale, current] if stale_first else [current, stale]


@_ORDERS
@pytest.mark.requirement("S0.3", "S0.12")
def test_the_result_is_that_of_the_lease_that_holds(
    store: StoreUnderTest, stale_first: bool
) -> None:
    stale, current = _twice(store)
    ends = _in_order(
        stale_first,
        Ended(stale, Outcome(kind=OutcomeKind.SUCCESS, result=b'"stale"', ran_seconds=1.0)),
        Ended(current, Outcome(kind=OutcomeKind.SUCCESS, result=b'"current"', ran_seconds=1.0)),
    )
    store.store.finish("w1", ends)
    report = store.job(current.job_id).report
    assert report is not None
    assert (report.token, report.result) == (current.token, "current")
    assert store.sql(f"select count(*) from {{s}}history where id = {current.job_id}") == [(1,)]


@_ORDERS
@pytest.mark.requirement("S0.3", "S0.12")
def test_the_error_is_that_of_the_lease_that_holds(
    store: StoreUnderTest, stale_first: bool
) -> None:
    stale, current = _twice(store)
    ends = _in_order(
        stale_first,
        Ended(stale, Outcome(kind=OutcomeKind.ERROR, reason="stale")),
        Ended(current, Outcome(kind=OutcomeKind.ERROR, reason="current")),
    )
    store.store.finish("w1", ends)
    job = store.job(current.job_id)
    assert job.state is State.QUEUED
    assert [event.reason for event in store.store.events(job.id)][-1] == "current"


@_ORDERS
@pytest.mark.requirement("S0.12")
def test_only_words_of_the_lease_that_holds_are_kept(
    store: StoreUnderTest, stale_first: bool
) -> None:
    stale, current = _twice(store)
    said = [
        Noted(key_of(stale), Progress(1, message="stale"), (Line(1, "stale", 0.0),)),
        Noted(key_of(current), Progress(2, message="current"), (Line(1, "current", 0.0),)),
    ]
    store.store.note("w1", said if stale_first else said[::-1])
    progress = store.job(current.job_id).progress
    assert progress is not None
    assert progress.message == "current"
    assert [note.line for note in store.store.notes(current.job_id)] == ["current"]
