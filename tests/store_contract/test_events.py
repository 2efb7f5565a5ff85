"""Following what happens to all jobs, in order."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput
from freehold.model.history import GAP_SECONDS, EventKind, before_first_gap
from freehold.model.operator_actions import OperatorVerb
from tests.stores import StoreUnderTest


def _pause(store: StoreUnderTest, *ids: int) -> None:
    for job_id in ids:
        store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)


@pytest.mark.requirement("S2.5")
def test_events_are_followed_in_order_from_the_last_that_was_seen(store: StoreUnderTest) -> None:
    first = store.store.newest_event()
    jobs = [store.add() for _ in range(3)]
    _pause(store, *jobs)
    store.advance(GAP_SECONDS)  # sequences of the tests before leave gaps
    seen = store.store.events_after(first, 2)
    assert [event.job_id for event in seen] == jobs[:2]
    rest = store.store.events_after(seen[-1].id, 2)
    assert [(event.job_id, event.kind) for event in rest] == [(jobs[2], EventKind.PAUSED)]
    assert store.store.newest_event() == rest[-1].id
    assert store.store.events_after(rest[-1].id, 2) == []


def test_no_reader_passes_an_id_that_may_still_commit(store: StoreUnderTest) -> None:
    jobs = [store.add() for _ in range(3)]
    before = store.store.newest_event()
    _pause(store, *jobs)
    events = store.store.events_after(before, 10)
    if not events:  # this store's numbers began with a gap
        store.advance(GAP_SECONDS)
        events = store.store.events_after(before, 10)
    one, two, three = events
    now, after = three.at, one.id - 1
    assert before_first_gap(after, [one, two, three], now) == [one, two, three]
    assert before_first_gap(after, [two, three], now) == []
    assert before_first_gap(after, [one, three], now) == [one]
    store.advance(GAP_SECONDS)
    assert before_first_gap(after, [one, three], store.now()) == [one, three]


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_read_of_events_is_bounded(store: StoreUnderTest, limit: int) -> None:
    with pytest.raises(BadInput, match="1 to 1000 events"):
        store.store.events_after(0, limit)
