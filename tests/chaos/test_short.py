"""A short chaos run on each store, checked like the long runs of `scripts/chaos`."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from freehold.worker.event_loop import run_loop
from tests.chaos.plan import Plan, StoreKind
from tests.chaos.progress import FLOWS, GHOSTS_REJECTED, JOBS, RUN_AGAIN
from tests.chaos.report import Report
from tests.chaos.world import World

#: What must have happened before the faults end, on a machine of any speed.
_ALWAYS = {
    "kill": 3,
    "freeze": 1,
    "drain": 1,
    JOBS: 100,
    FLOWS: 5,
    RUN_AGAIN: 1,
    GHOSTS_REJECTED: 1,
}
_AT_LEAST: dict[StoreKind, dict[str, int]] = {
    "postgres": {**_ALWAYS, "hard_stop": 1, "cut": 1, "answer_lost": 1},
    "sqlite": {**_ALWAYS, "writer": 1},
}
#: A limit for hangs: no run takes that long.
_HANG_SECONDS = 600.0
_FAULTS: dict[StoreKind, dict[str, float]] = {
    "postgres": {
        "kill": 1.0,
        "freeze": 3.0,
        "drain": 2.0,
        "hard_stop": 5.0,
        "cut": 1.0,
        "cut_at_commit": 1.0,
        "answer_lost": 0.7,
        "answer_lost_at_commit": 1.0,
        "request_lost": 1.0,
    },
    "sqlite": {"kill": 1.0, "freeze": 3.0, "drain": 2.0, "writer": 2.0, "disk_full": 3.0},
}


@pytest.mark.requirement("S0.9", "S2.1")
@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_no_job_is_lost_or_runs_again_without_a_cause(kind: StoreKind, tmp_path: Path) -> None:
    plan = Plan(
        store=kind,
        seconds=7.0,
        seed=4,
        folder=tmp_path / "chaos",
        workers=3,
        producers=1,
        jobs_per_second=40.0,
        flows_per_second=2.0,
        faults=_FAULTS[kind],
        at_least=_AT_LEAST[kind],
    )
    texts: list[str] = []
    report = run_loop(asyncio.wait_for(World(plan, texts.append).run(), _HANG_SECONDS))
    assert report.violations == [], "\n".join(texts[-3:])
    happened = Counter(report.faults) + Counter(
        {
            JOBS: report.jobs,
            FLOWS: _flows(report),
            RUN_AGAIN: report.second_runs.get("lease_lost", 0),
            GHOSTS_REJECTED: sum(report.stale_rejected_of_ghosts.values()),
        }
    )
    assert Counter(_AT_LEAST[kind]) - happened == Counter(), report


def _flows(report: Report) -> int:
    """Closed ones, which is all of them."""
    kinds = "batch ", "workflow "
    return sum(count for name, count in report.flows.items() if name.startswith(kinds))
