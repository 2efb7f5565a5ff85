"""The checker is tested by bugs: each of these is found, and by what should find it."""

from __future__ import annotations

from leasehold.simulation.program import random_program
from leasehold.simulation.world import play
from tests.simulation.bugs import BUGS, WITNESSED, Bug

SEEDS = 25


def test_planted_bugs_are_found() -> None:
    """By the history checker alone, as in real processes; where only whoever sees every write
    can know, by the witness. A few need more seeds than a test has time for: see `search`."""
    unfound = [bug.name for bug in BUGS.values() if not _is_found(bug)]
    assert len(unfound) <= len(BUGS) // 10, unfound


def _is_found(bug: Bug) -> bool:
    tried = dict.fromkeys([*bug.seeds, *range(SEEDS)])  # those that found it once come first
    return any(_finds(bug, seed) for seed in tried)


def _finds(bug: Bug, seed: int) -> bool:
    with bug.plant():
        played = play(random_program(seed))
    return bool(played.violations if bug.name in WITNESSED else played.afterwards)


def test_most_bugs_are_found_by_the_checker_alone() -> None:
    assert len(BUGS) - len(WITNESSED) >= 25
