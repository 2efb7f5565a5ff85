"""Looks for seeds that find planted bugs: `python -m tests.simulation.search [NAME] [SEEDS]`."""

from __future__ import annotations

import sys

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import random_scenario
from tests.simulation.bugs import BUGS, Bug
from tests.simulation.tenant_bugs import TENANT_BUGS

WANTED = 1


def search(bug: Bug, seeds: int) -> tuple[list[int], str]:
    """Seeds by which the checker finds it; if there are none, those by which the witness does."""
    found: list[int] = []
    seen: list[int] = []
    how = ""
    for seed in range(seeds):
        with bug.plant():
            played = run_scenario(random_scenario(seed))
        if played.afterwards:
            found.append(seed)
            how = how or str(played.afterwards[0])
        elif played.at_once:
            seen.append(seed)
        if len(found) == WANTED:
            break
    if not found and seen:
        return seen[:WANTED], "witnessed"
    return found, how


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, each in (BUGS | TENANT_BUGS).items():
        if wanted in name:
            seeds, text = search(each, int(sys.argv[2]) if len(sys.argv) > 2 else 100)
            print(f"    {name!r}: {tuple(seeds)},  # {text[:100]}", flush=True)
