"""The raw limit, Freehold on both stores, and the installed peers, side by side."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contender import Contender
from bench.contenders import CONTENDERS
from bench.measures import Bench, blocking, fill_and_drain, latency, one_by_one
from bench.rounds import Run, run_interleaved


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    rounds: int = 3
    jobs: int = 50_000
    one_seconds: float = 5.0
    latency_jobs: int = 500


QUICK = Sizes(rounds=1, jobs=1000, one_seconds=0.3, latency_jobs=50)


def present(only: list[str], node: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Versions of the contenders that can be measured, and why the others cannot."""
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in only or CONTENDERS:
        version = CONTENDERS[name].version(node)
        if version is None:
            absent[name] = f"{CONTENDERS[name].package} is not installed"
        else:
            versions[name] = version
    return versions, absent


def measure(
    bench: Bench, sizes: Sizes, only: list[str], node: Path | None, out: Path | None
) -> Run:
    versions, absent = present(only, node)
    run = Run(
        "core",
        {
            "server": bench.server.describe(),
            "round_count": sizes.rounds,
            "jobs": sizes.jobs,
            "one_seconds": sizes.one_seconds,
            "latency_jobs": sizes.latency_jobs,
            "absent": absent,
            "contenders": {
                name: {"version": v, "terms": CONTENDERS[name].terms}
                for name, v in versions.items()
            },
        },
    )
    measures = {
        name: functools.partial(_measure_all, bench, CONTENDERS[name], sizes) for name in versions
    }
    run_interleaved(run, measures, sizes.rounds, out)
    return run


def _measure_all(bench: Bench, contender: type[Contender], sizes: Sizes) -> dict[str, Any]:
    one, two = (fill_and_drain(bench, contender, sizes.jobs, processes) for processes in (1, 2))
    return {
        "one": one_by_one(bench, contender, sizes.one_seconds),
        "blocking": blocking(bench, contender, sizes.one_seconds),
        "drain1": one,
        "drain2": two,
        # Both were filled in the same way: take the two together.
        "bulk": {"rate": 2 / (1 / one.pop("bulk") + 1 / two.pop("bulk"))},
        "latency": latency(bench, contender, sizes.latency_jobs),
    }
