"""A lane in which somebody waits, and nobody holds it: made by hand, as a crash can leave it."""

from __future__ import annotations

import pytest

from freehold.model.operator_actions import OperatorVerb
from tests.stores import StoreUnderTest


def adrift(store: StoreUnderTest, target: str) -> int:
    """Its holder vanishes without passing it on; answers who is next."""
    holder, following = store.add(target=target), store.add(target=target)
    assert store.claim_one().job_id == holder
    assert store.claim() == []  # the other one is behind it now
    store.sql(f"delete from {{s}}job where id = {holder}")
    assert store.claim() == []
    return following


@pytest.mark.requirement("S4.3", "P6")
def test_it_is_given_to_its_next(store: StoreUnderTest) -> None:
    following = adrift(store, "lane")
    walk = store.store.free_lanes("", 10)
    assert (walk.freed, walk.reached) == (("lane",), "")
    assert store.claim_one().job_id == following
    assert store.store.free_lanes("", 10).freed == ()


def test_a_next_that_is_paused_goes_on_stopping_it(store: StoreUnderTest) -> None:
    following = adrift(store, "lane")
    behind = store.add(target="lane")
    store.sql(f"update {{s}}job set stage = 'q' where id = {following}")
    assert store.store.free_lanes("", 10).freed == ("lane",)
    assert store.claim() == []
    assert store.store.operate(OperatorVerb.RESUME, [following], "ann", None)[0].what == "done"
    assert store.claim_one().job_id == following
    assert store.state(behind) == "queued"


def test_lanes_are_walked_over_in_parts(store: StoreUnderTest) -> None:
    lanes = [f"lane{number}" for number in range(5)]
    for name in lanes:
        adrift(store, name)
    found, after, parts = list[str](), "", 0
    while parts == 0 or after:
        walk = store.store.free_lanes(after, 2)
        found += walk.freed
        after, parts = walk.reached, parts + 1
    assert (found, parts) == (lanes, 3)
    assert len(store.claim()) == 5


def test_nothing_is_done_to_lanes_that_somebody_holds_or_can_take(store: StoreUnderTest) -> None:
    for target in ("held", "held", "ready", "ready"):
        store.add(target=target)
    assert store.claim_one().target == "held"
    before = store.everything()
    assert store.store.free_lanes("", 10).freed == ()
    assert store.everything() == before
