"""The raw limit, Freehold on both stores, and the peers that are installed: side by side."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measures import Bench, blocking, drain, latency, one_by_one
from bench.rounds import Run, interleaved
from bench.sides import SIDES
from bench.sides.side import Side


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rounds: int = 3
    jobs: int = 50_000
    one_seconds: float = 5.0
    latency_jobs: int = 500


QUICK = Sizes(rounds=1, jobs=1000, one_seconds=0.3, latency_jobs=50)


def present(only: list[str], node: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Versions of those that can be measured, and why the others cannot."""
    versions: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name in only or SIDES:
        version = SIDES[name].version(node)
        if version is None:
            absent[name] = f"{SIDES[name].package} is not installed"
        else:
            versions[name] = version
    return versions, absent


def measure(
    bench: Bench, sizes: Sizes, only: list[str], node: Path | None, keep: Path | None
) -> Run:
    versions, absent = present(only, node)
    run = Run(
        "core",
        {
            "server": bench.server.described(),
            "round_count": sizes.rounds,
            "jobs": sizes.jobs,
            "one_seconds": sizes.one_seconds,
            "latency_jobs": sizes.latency_jobs,
            "absent": absent,
            "sides": {
                name: {"version": v, "terms": SIDES[name].terms} for name, v in versions.items()
            },
        },
    )
    works = {name: functools.partial(_all, bench, SIDES[name], sizes) for name in versions}
    interleaved(run, works, sizes.rounds, keep)
    return run


def _all(bench: Bench, side: type[Side], sizes: Sizes) -> dict[str, Any]:
    one, two = (drain(bench, side, sizes.jobs, processes) for processes in (1, 2))
    return {
        "one": one_by_one(bench, side, sizes.one_seconds),
        "blocking": blocking(bench, side, sizes.one_seconds),
        "drain1": one,
        "drain2": two,
        # Both were filled alike: together.
        "bulk": {"rate": 2 / (1 / one.pop("bulk") + 1 / two.pop("bulk"))},
        "latency": latency(bench, side, sizes.latency_jobs),
    }
