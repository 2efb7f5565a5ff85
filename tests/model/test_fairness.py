"""Shares by weight, without claims."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.model.fairness import Fairness

NAMES = ("a", "b", "c", "d")
weights = st.lists(st.floats(0.01, 100.0), min_size=4, max_size=4)


def weighted(given: list[float]) -> Fairness:
    fairness = Fairness(NAMES)
    for name, weight in zip(NAMES, given, strict=True):
        fairness.weights[name] = weight
    return fairness


def serve(fairness: Fairness, turns: int, among: tuple[str, ...] = NAMES) -> list[str]:
    served = []
    for _ in range(turns):
        name = fairness.first(among)
        fairness.served(name, 1, 1)
        served.append(name)
    return served


@pytest.mark.requirement("S3.6")
@given(weights)
def test_each_queue_gets_its_share_at_any_time(given: list[float]) -> None:
    fairness, total = weighted(given), sum(given)
    counts: Counter[str] = Counter()
    for turn, name in enumerate(serve(fairness, 500), 1):
        counts[name] += 1
        for each, weight in zip(NAMES, given, strict=True):
            assert abs(counts[each] - turn * weight / total) <= len(NAMES)


@pytest.mark.requirement("S3.6")
@given(weights)
def test_the_lightest_queue_waits_a_bounded_number_of_turns(given: list[float]) -> None:
    fairness = weighted(given)
    lightest = NAMES[given.index(min(given))]
    bound = sum(given) / min(given) + len(NAMES)
    turns = [at for at, name in enumerate(serve(fairness, 2000)) if name == lightest]
    assert turns[0] <= len(NAMES)
    assert all(after - before <= bound for before, after in pairwise(turns))


@pytest.mark.requirement("S3.6")
@given(weights)
def test_a_queue_that_was_idle_gets_no_more_than_its_share(given: list[float]) -> None:
    fairness = weighted(given)
    serve(fairness, 1000, ("a", "b"))
    fairness.come_back("d")
    served = serve(fairness, 200, ("a", "b", "d"))
    expected = 200 * given[3] / (given[0] + given[1] + given[3])
    assert abs(served.count("d") - expected) <= len(NAMES)


@given(weights, st.integers(1, 1000))
def test_a_share_is_at_least_one_and_at_most_the_room(given: list[float], room: int) -> None:
    fairness = weighted(given)
    shares = [fairness.share(name, NAMES, room) for name in NAMES]
    assert all(1 <= share <= room for share in shares)
    assert sum(shares) <= room + len(NAMES)
