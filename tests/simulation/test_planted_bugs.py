"""The checker finds every planted bug."""

from __future__ import annotations

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import (
    HORIZON_SECONDS,
    QUEUES,
    Call,
    JobPlan,
    Scenario,
    WorkerPlan,
    random_scenario,
)
from freehold.lab.simulation.world import STILL_SECONDS
from tests.simulation.bugs import BUGS, FOUND_BY_INVARIANTS, Bug
from tests.simulation.flow_bugs import FLOW_BUGS, WITHOUT_NET
from tests.simulation.sharp_scenarios import SHARP
from tests.simulation.step_bugs import STEP_BUGS
from tests.simulation.tenant_bugs import TENANT_BUGS

SEEDS = 25
_ALL = BUGS | STEP_BUGS | FLOW_BUGS | TENANT_BUGS


@pytest.mark.parametrize("name", sorted(_ALL))
def test_a_planted_bug_is_found(name: str) -> None:
    """By the history checker alone, as with real processes, unless only a check of every write can
    find it."""
    bug = _ALL[name]
    tried = dict.fromkeys([*bug.seeds, *range(SEEDS)])  # the known seeds come first
    assert any(_finds(bug, seed) for seed in tried), f"{len(tried)} seeds did not find it"


@pytest.mark.parametrize("name", sorted(SHARP))
def test_a_sharp_scenario_finds_its_bug_with_any_seed(name: str) -> None:
    for seed in range(3):
        assert not run_scenario(SHARP[name](seed)).violations, "without the bug it has none"
        assert _finds(_ALL[name], seed), seed


def test_folds_leave_nothing_to_the_sweeps_if_no_worker_dies() -> None:
    """Without this the second look of a fold would not be needed."""
    for seed in range(3):
        with WITHOUT_NET():
            assert not run_scenario(SHARP["a fold does not look again"](seed)).violations


def test_a_run_that_stands_still_ends_early() -> None:
    """Its job counts as not ended, and the test of each bug that loses jobs is quick."""
    worker = WorkerPlan(0.0, "w1", QUEUES, 1, 1.0, knows_newer=True, grace_seconds=1.0)
    call = Call(0.1, 1, (JobPlan(target="lane", runs=((0.1, "error"),)),), idempotent=True)
    with BUGS["jobs in backoff are forgotten"].plant():
        result = run_scenario(Scenario(0, (worker,), (call,), (), ()))
    assert {"I9"} == {each.rule for each in result.found_after}
    ended_seconds = result.trace[-1][0] / 1e6
    assert HORIZON_SECONDS + STILL_SECONDS < ended_seconds < HORIZON_SECONDS + STILL_SECONDS + 2.0


def _finds(bug: Bug, seed: int) -> bool:
    with bug.plant():
        result = run_scenario(SHARP.get(bug.name, random_scenario)(seed))
    return bool(result.violations if bug.name in FOUND_BY_INVARIANTS else result.found_after)


def test_most_bugs_are_found_by_the_checker_alone() -> None:
    assert len(BUGS.keys() - FOUND_BY_INVARIANTS) >= 25
