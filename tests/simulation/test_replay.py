"""A seed is a run: whoever plays it sees the same, to the microsecond."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from freehold.lab.simulation.tenant_world import TenantWorld

#: A program with tenants, who live in two places.
TENANTED = 16
_PLAY = (
    "from freehold.lab.simulation.scenario import random_program\n"
    "from freehold.lab.simulation.run import play\n"
    "print(*(play(random_program(seed)).digest for seed in (3, 7, 16)))\n"
)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, TENANTED])
def test_a_seed_replays_exactly(seed: int) -> None:
    """The digest covers every statement with its answer, every record, and how all ended."""
    first, second = run_scenario(random_scenario(seed)), run_scenario(random_scenario(seed))
    assert first.story == second.story
    assert first.digest == second.digest


def test_seeds_differ() -> None:
    assert run_scenario(random_scenario(1)).digest != run_scenario(random_scenario(2)).digest


def test_a_seed_replays_in_another_process() -> None:
    """Whatever the order of its sets."""
    here = [run_scenario(random_scenario(seed)).digest for seed in (3, 7, TENANTED)]
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", _PLAY],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == here


def test_a_fleet_that_was_played_leaves_nothing_behind() -> None:
    """Thousands are played in one process. A cache of handlers once kept all of them."""
    run_scenario(random_scenario(1))
    run_scenario(random_scenario(TENANTED))
    gc.collect()
    assert not [each for each in gc.get_objects() if issubclass(type(each), TenantWorld)]
