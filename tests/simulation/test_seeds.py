"""No seed has a violation, and together they reach every fault, state, transition and event."""

from __future__ import annotations

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from freehold.lab.simulation.seeds import SeedSummary, run_seeds
from tests.simulation.bugs import BUGS
from tests.simulation.flow_bugs import FLOW_BUGS
from tests.simulation.step_bugs import STEP_BUGS
from tests.simulation.tenant_bugs import TENANT_BUGS
from tests.sizes import sized

SEEDS = sized("SEEDS", short=10, long=5000)
#: Seeds that find a planted bug: without the bug they have no violation.
_FINDING = {
    seed for bug in (BUGS | STEP_BUGS | FLOW_BUGS | TENANT_BUGS).values() for seed in bug.seeds
}
BEYOND = {seed for seed in _FINDING if seed >= SEEDS}


@pytest.fixture(scope="module")
def summary() -> SeedSummary:
    summary = run_seeds(0, SEEDS, lambda _summary: None)
    for seed in sorted(BEYOND):
        summary.add(run_scenario(random_scenario(seed)))
    return summary


@pytest.mark.requirement(
    "S0.2", "S0.3", "S0.9", "S0.12", "S2.1", "S3.4", "S4.3", "P1", "P2", "P7", "P9"
)
def test_the_seeds_have_no_violation(summary: SeedSummary) -> None:
    assert summary.seeds == SEEDS + len(BEYOND)
    assert summary.failed == {}


def test_every_fault_state_transition_and_event_was_reached(summary: SeedSummary) -> None:
    """The simulation proves nothing about cases that it never reaches."""
    assert summary.missed == []
