"""The checker is tested by bugs: each of these is found, and by what should find it."""

from __future__ import annotations

import pytest

from leasehold.simulation.program import random_program
from leasehold.simulation.world import play
from tests.simulation.bugs import BUGS, WITNESSED, Bug

#: The issue allows 2,000; none needs nearly as many.
SEEDS = 300


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """By the history checker alone, as in real processes; where only whoever sees every write
    can know, by the witness."""
    tried = dict.fromkeys([*bug.seeds, *range(SEEDS)])  # those that found it once come first
    assert any(_finds(bug, seed) for seed in tried), f"{len(tried)} seeds did not find it"


def _finds(bug: Bug, seed: int) -> bool:
    with bug.plant():
        played = play(random_program(seed))
    return bool(played.violations if bug.name in WITNESSED else played.afterwards)


def test_most_bugs_are_found_by_the_checker_alone() -> None:
    assert len(BUGS) - len(WITNESSED) >= 25
