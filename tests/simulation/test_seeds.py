"""No seed has a violation, and together they reach every fault, state, transition and event."""

from __future__ import annotations

import functools
from collections.abc import Sequence

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
_BEYOND = sorted(seed for seed in _FINDING if seed >= SEEDS)
#: A group is one test, and short enough for the time limit of a test on a busy machine.
_GROUPS: list[Sequence[int]] = [
    *(range(first, min(first + 500, SEEDS)) for first in range(0, SEEDS, 500)),
    *(_BEYOND[first : first + 5] for first in range(0, len(_BEYOND), 5)),
]


@functools.cache
def run_group(number: int) -> SeedSummary:
    seeds = _GROUPS[number]
    if isinstance(seeds, range):
        return run_seeds(seeds.start, len(seeds), lambda _summary: None)
    summary = SeedSummary()
    for seed in seeds:
        summary.add(run_scenario(random_scenario(seed)))
    return summary


@pytest.mark.requirement(
    "S0.2", "S0.3", "S0.9", "S0.12", "S2.1", "S3.4", "S4.3", "P1", "P2", "P7", "P9"
)
@pytest.mark.parametrize("number", range(len(_GROUPS)))
def test_the_seeds_of_a_group_have_no_violation(number: int) -> None:
    summary = run_group(number)
    assert summary.seeds == len(_GROUPS[number])
    assert summary.failed == {}


def test_every_fault_state_transition_and_event_was_reached() -> None:
    """The simulation proves nothing about cases that it never reaches."""
    total = SeedSummary()
    for number in range(len(_GROUPS)):
        total.merge(run_group(number))
    assert total.missed == []
