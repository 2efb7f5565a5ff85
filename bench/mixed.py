"""Loads that are not uniform: bulk calls with jobs that differ, and jobs that are retried."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.child import RETRIED_EVERY
from bench.contender import Contender
from bench.contenders import CONTENDERS
from bench.core import present
from bench.measures import Bench, fill_and_drain, mixed_bulk
from bench.rounds import Run, run_interleaved

_CONTENDERS = ["freehold", "freehold-sqlite", "pgqueuer"]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    rounds: int = 3
    jobs: int = 50_000


QUICK = Sizes(rounds=1, jobs=1000)


def measure(bench: Bench, sizes: Sizes, only: list[str], out: Path | None) -> Run:
    versions, absent = present(only or _CONTENDERS, None)
    details = {
        "server": bench.server.describe(),
        "round_count": sizes.rounds,
        "jobs": sizes.jobs,
        "retried_every": RETRIED_EVERY,
        "absent": absent,
        "contenders": {
            name: {"version": version, "terms": CONTENDERS[name].terms}
            for name, version in versions.items()
        },
    }
    run = Run("mixed", details)
    measures = {
        name: functools.partial(_measure_all, bench, CONTENDERS[name], sizes.jobs)
        for name in versions
    }
    run_interleaved(run, measures, sizes.rounds, out)
    return run


def _measure_all(bench: Bench, contender: type[Contender], jobs: int) -> dict[str, Any]:
    return {
        "bulk": mixed_bulk(bench, contender, jobs),
        "steady": fill_and_drain(bench, contender, jobs, role="enqueue-steady"),
        "retried": fill_and_drain(bench, contender, jobs, role="enqueue-retried"),
    }
