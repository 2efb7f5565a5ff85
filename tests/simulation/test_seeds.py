"""Five hundred fleets under faults keep every promise, and reach everything there is to reach."""

from __future__ import annotations

import pytest

from leasehold.simulation.sweep import Swept, sweep

SEEDS = 500


@pytest.fixture(scope="module")
def swept() -> Swept:
    return sweep(0, SEEDS, lambda _swept: None)


@pytest.mark.requirement(
    "S0.2", "S0.3", "S0.9", "S0.12", "S2.1", "S3.4", "S4.3", "P1", "P2", "P7", "P9"
)
def test_five_hundred_fleets_keep_every_promise(swept: Swept) -> None:
    assert swept.seeds == SEEDS
    assert swept.failed == {}


def test_every_fault_state_transition_and_event_was_reached(swept: Swept) -> None:
    """A simulation that never gets there proves nothing about it."""
    assert swept.missed == []
