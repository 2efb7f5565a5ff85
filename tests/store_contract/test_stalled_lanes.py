"""A lane with waiting jobs and no holder, made by hand as a crash can leave it."""

from __future__ import annotations

import pytest

from freehold.model.operator_actions import OperatorVerb
from tests.stores import StoreUnderTest


def stalled(store: StoreUnderTest, target: str) -> int:
    """The holder vanishes without a promotion; returns the next job."""
    holder, following = store.add(target=target), store.add(target=target)
    assert store.claim_one().job_id == holder
    assert store.claim() == []  # the other one is behind it now
    store.sql(f"delete from {{s}}job where id = {holder}")
    assert store.claim() == []
    return following


@pytest.mark.requirement("S4.3", "P6")
def test_it_is_given_to_its_next(store: StoreUnderTest) -> None:
    following = stalled(store, "lane")
    walk = store.store.promote_stalled_lanes("", 10)
    assert (walk.freed, walk.reached) == (("lane",), "")
    assert store.claim_one().job_id == following
    assert store.store.promote_stalled_lanes("", 10).freed == ()


def test_a_stalled_lane_with_a_paused_next_job_stays_blocked(store: StoreUnderTest) -> None:
    following = stalled(store, "lane")
    behind = store.add(target="lane")
    store.sql(f"update {{s}}job set stage = {{paused_follower}} where id = {following}")
    assert store.store.promote_stalled_lanes("", 10).freed == ("lane",)
    assert store.claim() == []
    assert store.store.operate(OperatorVerb.RESUME, [following], "ann", None)[0].status == "done"
    assert store.claim_one().job_id == following
    assert store.state(behind) == "queued"


def test_lanes_are_walked_over_in_parts(store: StoreUnderTest) -> None:
    lanes = [f"lane{number}" for number in range(5)]
    for name in lanes:
        stalled(store, name)
    found, after, parts = list[str](), "", 0
    while parts == 0 or after:
        walk = store.store.promote_stalled_lanes(after, 2)
        found += walk.freed
        after, parts = walk.reached, parts + 1
    assert (found, parts) == (lanes, 3)
    assert len(store.claim()) == 5


def test_lanes_with_a_holder_or_a_ready_job_are_left_alone(store: StoreUnderTest) -> None:
    for target in ("held", "held", "ready", "ready"):
        store.add(target=target)
    assert store.claim_one().target == "held"
    before = store.everything()
    assert store.store.promote_stalled_lanes("", 10).freed == ()
    assert store.everything() == before
