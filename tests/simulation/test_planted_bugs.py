"""The checker is tested by bugs: each of these is found, and by what should find it."""

from __future__ import annotations

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from tests.simulation.bugs import BUGS, WITNESSED, Bug
from tests.simulation.tenant_bugs import TENANT_BUGS

SEEDS = 25
_ALL = BUGS | TENANT_BUGS


@pytest.mark.parametrize("name", sorted(_ALL))
def test_a_planted_bug_is_found(name: str) -> None:
    """By the history checker alone, as in real processes; where only whoever sees every write
    can know, by the witness."""
    bug = _ALL[name]
    tried = dict.fromkeys([*bug.seeds, *range(SEEDS)])  # those that found it once come first
    assert any(_finds(bug, seed) for seed in tried), f"{len(tried)} seeds did not find it"


def _finds(bug: Bug, seed: int) -> bool:
    with bug.plant():
        played = run_scenario(random_scenario(seed))
    return bool(played.violations if bug.name in WITNESSED else played.afterwards)


def test_most_bugs_are_found_by_the_checker_alone() -> None:
    assert len(BUGS.keys() - WITNESSED) >= 25
