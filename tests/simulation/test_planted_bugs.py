"""The checker is tested by bugs: each of these is found, and by what should find it."""

from __future__ import annotations

import pytest

from leasehold.simulation.program import random_program
from leasehold.simulation.world import play
from tests.simulation.bugs import BUGS, WITNESSED, Bug


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    """By the history checker alone, as in real processes; where only whoever sees every write
    can know, by the witness."""
    assert bug.seeds, "look for seeds: python -m tests.simulation.search"
    for seed in bug.seeds:
        with bug.plant():
            played = play(random_program(seed))
        found = played.violations if bug.name in WITNESSED else played.afterwards
        assert found, f"seed {seed} did not find it"


def test_most_bugs_are_found_by_the_checker_alone() -> None:
    assert len(BUGS) - len(WITNESSED) >= 25
