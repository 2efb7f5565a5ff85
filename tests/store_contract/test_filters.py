"""Filters of jobs: each field finds exactly what it names, and no page reads without a bound."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.model.job import ErrorInfo
from freehold.model.outcome import OutcomeKind
from freehold.model.state import State
from freehold.operator import Operator
from freehold.store.types import JobFilter
from freehold.store.verbs import queries
from tests.store_contract.test_read import page_ids
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N16")


def fail(store: StoreUnderTest, error: str, owner: str = "w1", **fields: object) -> int:
    job_id = store.add(**fields)
    attempt = store.claim_one(owner)
    assert store.end(attempt, OutcomeKind.FAIL, error=ErrorInfo(error, "no"))
    return job_id


def test_an_error_is_found_by_its_whole_name_or_its_last_part(store: StoreUnderTest) -> None:
    plain = fail(store, "ValueError")
    full = fail(store, "builtins.ValueError")
    other = fail(store, "shop.MyValueError")
    nested = fail(store, "shop.errors.Gone")
    store.add()
    assert page_ids(store, error="ValueError") == [full, plain]
    assert page_ids(store, error="builtins.ValueError") == [full]
    assert page_ids(store, error="MyValueError") == [other]
    assert page_ids(store, error="errors.Gone") == [nested]
    assert page_ids(store, error="gone") == []


def test_the_error_of_a_failed_job_that_blocks_its_lane_is_its_last_one(
    store: StoreUnderTest,
) -> None:
    job_id = store.add(target="lane", max_attempts=2)
    first = store.claim_one()
    store.end(first, OutcomeKind.ERROR, error=ErrorInfo("OSError", "away"), delay_seconds=1.0)
    store.advance(60.0)
    store.store.make_ready(10)
    store.end(store.claim_one(), OutcomeKind.FAIL, error=ErrorInfo("ValueError", "no"))
    assert store.job(job_id).state is State.FAILED
    assert page_ids(store, error="ValueError", states=frozenset({State.FAILED})) == [job_id]
    assert page_ids(store, error="OSError") == []


def test_a_worker_is_found_by_its_leases_and_by_what_it_finished(store: StoreUnderTest) -> None:
    done = store.add()
    assert store.end(store.claim_one("w1"), OutcomeKind.SUCCESS)
    failed = fail(store, "E", owner="w2")
    held = store.add()
    store.claim_one("w1")
    store.add()
    assert page_ids(store, worker="w1") == [held, done]
    assert page_ids(store, worker="w2") == [failed]
    assert page_ids(store, worker="w1", states=frozenset({State.ASSIGNED})) == [held]
    assert page_ids(store, worker="w3") == []


def test_a_time_of_creation_includes_its_beginning_and_not_its_end(store: StoreUnderTest) -> None:
    ids, times = [], []
    for number in range(4):
        ids.append(store.add())
        times.append(store.now())
        if number % 2:
            assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
        store.advance(600.0)
    assert page_ids(store, created_since=times[2]) == [ids[3], ids[2]]
    assert page_ids(store, created_until=times[2]) == [ids[1], ids[0]]
    assert page_ids(store, created_since=times[1], created_until=times[3]) == [ids[2], ids[1]]
    assert page_ids(store, created_until=times[0]) == []


def test_a_time_of_finishing_finds_no_live_job(store: StoreUnderTest) -> None:
    late = store.add()
    first = store.claim_one()
    store.advance(5.0)
    early, began = store.add(), store.now()
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.add()
    store.advance(10.0)
    between = store.now()
    assert store.end(first, OutcomeKind.SUCCESS)
    assert page_ids(store, finished_since=began) == [early, late]
    assert page_ids(store, finished_since=between) == [late]
    assert page_ids(store, finished_until=between) == [early]
    assert page_ids(store, finished_since=between - timedelta(days=400)) == [early, late]
    assert page_ids(store, finished_until=began) == []


def test_days_outside_of_the_filter_hide_no_job_at_midnight(store: StoreUnderTest) -> None:
    """History has a partition for each day: the bounds of the filter lie inside of a day."""
    ids, times = [], []
    for _ in range(6):
        ids.append(store.add())
        assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
        times.append(store.now())
        store.advance(5 * 3600.0)
    for first in range(6):
        for last in range(first + 1, 6):
            found = page_ids(store, finished_since=times[first], finished_until=times[last])
            assert found == ids[first:last][::-1]


def test_a_page_of_the_past_does_not_read_what_came_after(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the range is found by bisection: one window is enough for it."""
    monkeypatch.setattr(queries, "PAGE_WINDOW", 3)
    old = [store.add(), store.add()]
    store.advance(3600.0)
    until = store.now()
    store.advance(3600.0)
    for number in range(40):
        store.add()
        if number % 3 == 0:
            assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    page = store.store.page(JobFilter(created_until=until, limit=10))
    assert {job.id for job in page.jobs} <= set(old)
    assert page_ids(store, created_until=until) == sorted(old, reverse=True)
    assert len(page.jobs) == 2


def test_a_page_ends_where_jobs_are_older_than_the_filter(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE_WINDOW", 3)
    for _ in range(20):
        store.add(task="other")
    store.advance(3600.0)
    since, new = store.now(), store.add(task="other")
    page = store.store.page(JobFilter(created_since=since, limit=10))
    assert ([job.id for job in page.jobs], page.next, page.looked_until) == ([new], None, None)


def test_a_short_page_says_how_far_it_looked(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE_WINDOW", 3)
    rare, _first_at = store.add(task="rare"), store.now()
    times = {}
    for _ in range(5):
        store.advance(1.0)
        times[store.add()] = store.now()
    page = store.store.page(JobFilter(task="rare"))
    assert page.jobs == ()
    assert page.next is not None
    assert page.looked_until == times[page.next]
    assert page_ids(store, task="rare") == [rare]
    full = store.store.page(JobFilter(limit=2))
    assert full.next is not None
    assert full.looked_until == times[full.next]


def test_a_list_that_is_read_again_and_again_looks_once(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE_WINDOW", 3)
    rare = store.add(tags=("rare",))
    for _ in range(8):
        store.add()
    operator = Operator(store.store)
    filter = JobFilter(states=frozenset({State.QUEUED}), tag="rare")
    once = operator.jobs(filter, reads=1)
    assert (once.jobs, once.next is None, once.looked_until is None) == ((), False, False)
    assert [job.id for job in operator.jobs(filter).jobs] == [rare]
