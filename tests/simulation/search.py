"""Searches seeds that find planted bugs: `python -m tests.simulation.search [NAME] [SEEDS]`."""

from __future__ import annotations

import sys

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from tests.simulation.bugs import BUGS, Bug
from tests.simulation.flow_bugs import FLOW_BUGS
from tests.simulation.step_bugs import STEP_BUGS
from tests.simulation.tenant_bugs import TENANT_BUGS

WANTED = 1


def search(bug: Bug, seeds: int) -> tuple[list[int], str]:
    """Seeds with which the checker finds the bug; if there are none, those of the invariants."""
    found: list[int] = []
    seen: list[int] = []
    how = ""
    for seed in range(seeds):
        with bug.plant():
            result = run_scenario(random_scenario(seed))
        if result.found_after:
            found.append(seed)
            how = how or str(result.found_after[0])
        elif result.found_during:
            seen.append(seed)
        if len(found) == WANTED:
            break
    if not found and seen:
        return seen[:WANTED], "found by the invariants"
    return found, how


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, each in (BUGS | STEP_BUGS | FLOW_BUGS | TENANT_BUGS).items():
        if wanted in name:
            seeds, text = search(each, int(sys.argv[2]) if len(sys.argv) > 2 else 100)
            print(f"    {name!r}: {tuple(seeds)},  # {text[:100]}", flush=True)
