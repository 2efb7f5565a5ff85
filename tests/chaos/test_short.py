"""A short storm over each store, judged as the long one is. `scripts/chaos` has the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.worker.looping import run_loop
from tests.chaos.plan import Plan, StoreKind
from tests.chaos.world import World

#: Fault -> how often it must have happened in the end.
_EXPECTED: dict[StoreKind, dict[str, int]] = {
    "postgres": {"kill": 3, "freeze": 1, "drain": 1, "hard_stop": 1, "cut": 1, "answer_lost": 1},
    "sqlite": {"kill": 3, "freeze": 1, "drain": 1, "writer": 1},
}
_FAULTS: dict[StoreKind, dict[str, float]] = {
    "postgres": {
        "kill": 1.0, "freeze": 3.0, "drain": 2.0, "hard_stop": 5.0, "cut": 1.0,
        "cut_at_commit": 1.0, "answer_lost": 0.7, "answer_lost_at_commit": 1.0,
        "request_lost": 1.0,
    },
    "sqlite": {"kill": 1.0, "freeze": 3.0, "drain": 2.0, "writer": 2.0, "disk_full": 3.0},
}  # fmt: skip


@pytest.mark.requirement("S0.9", "S2.1")
@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_nothing_is_lost_and_nothing_doubled_without_a_cause(
    kind: StoreKind, tmp_path: Path
) -> None:
    plan = Plan(
        store=kind, seconds=9.0, seed=4, folder=tmp_path / "chaos", workers=3, producers=1,
        jobs_per_second=60.0, faults=_FAULTS[kind], end_seconds=90.0,
    )  # fmt: skip
    said: list[str] = []
    report = run_loop(World(plan, said.append).play())
    assert report.violations == [], "\n".join(said[-3:])
    assert report.jobs >= 100
    assert report.doubled.get("lease_lost", 0) > 0
    assert sum(report.stale_rejected_of_ghosts.values()) > 0
    missing = {
        name for name, least in _EXPECTED[kind].items() if report.faults.get(name, 0) < least
    }
    assert missing == set(), report.faults
