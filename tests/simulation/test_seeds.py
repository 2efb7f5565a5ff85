"""Fleets under faults keep every promise, and together reach everything that can be reached."""

from __future__ import annotations

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from freehold.lab.simulation.seeds import SeedSummary, run_seeds
from tests.simulation.bugs import BUGS
from tests.simulation.tenant_bugs import TENANT_BUGS
from tests.sizes import sized

#: The first 80 reach every fault, state, transition and event.
SEEDS = sized("SEEDS", short=150, long=5000)
#: Seeds that find a planted bug, and are not among those: without the bug they pass.
BEYOND = {seed for bug in (BUGS | TENANT_BUGS).values() for seed in bug.seeds if seed >= SEEDS}


@pytest.fixture(scope="module")
def swept() -> SeedSummary:
    swept = run_seeds(0, SEEDS, lambda _swept: None)
    for seed in sorted(BEYOND):
        swept.add(run_scenario(random_scenario(seed)))
    return swept


@pytest.mark.requirement(
    "S0.2", "S0.3", "S0.9", "S0.12", "S2.1", "S3.4", "S4.3", "P1", "P2", "P7", "P9"
)
def test_fleets_under_faults_keep_every_promise(swept: SeedSummary) -> None:
    assert swept.seeds == SEEDS + len(BEYOND)
    assert swept.failed == {}


def test_every_fault_state_transition_and_event_was_reached(swept: SeedSummary) -> None:
    """A simulation that never gets there proves nothing about it."""
    assert swept.missed == []
