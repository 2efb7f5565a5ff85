"""The table at the end of a run, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tests.chaos.judge import Judgement

#: Rows of the table -> the rules of the violations that they count.
_RULES_BY_ROW = {
    "lost": ("I1", "I9"),
    "second runs without a cause": ("I4",),
    "stale writes accepted": ("I2",),
    "lane inversions and overlaps": ("I3",),
    "retry policies violated": ("I5", "P7", "S3.3", "S2.7", "S4.9", "S4.10", "S1.1"),
    "unique keys violated": ("I6",),
    "wrong responses": ("I10",),
    "limits exceeded": ("S0.10",),
    "counters and callbacks of flows": ("N11",),
    "nodes and gathers": ("N12",),
    "steps and signals": ("N8", "N9", "N10"),
}


class Report(msgspec.Struct, frozen=True):
    """The result of one run."""

    store: str
    seed: int
    minutes: float
    jobs: int
    acknowledged: int
    attempts: int
    states: dict[str, int]
    faults: dict[str, int]
    second_runs: dict[str, int]
    responses: dict[str, int]
    flows: dict[str, int]
    stale_rejected_by_workers: int
    lanes_freed: int
    stale_rejected_of_ghosts: dict[str, int]
    worst_recovery_seconds: float
    worst_disturbed_recovery_seconds: float
    worst_standstill_seconds: float
    drained_after_seconds: float
    violation_counts: dict[str, int]
    violations: list[str]
    #: Of a cluster, by kind of fault.
    new_primary_seconds: dict[str, list[float]] = {}
    first_job_seconds: dict[str, list[float]] = {}

    @property
    def holds(self) -> bool:
        return not self.violations


def violation_counts(judgement: Judgement, ghosts_accepted: int) -> dict[str, int]:
    found = {name: judgement.of_rules(*rules) for name, rules in _RULES_BY_ROW.items()}
    found["stale writes accepted"] += ghosts_accepted
    known = {rule for rules in _RULES_BY_ROW.values() for rule in rules}
    found["others"] = sum(violation.rule not in known for violation in judgement.violations)
    return found


def show(report: Report, console: Console) -> None:
    table = Table(title=f"Chaos on {report.store}, {report.minutes:g} minutes, seed {report.seed}")
    table.add_column("Result")
    table.add_column("Count", justify="right")
    for name, value in _rows(report):
        if name:
            table.add_row(name, f"{value:,}" if isinstance(value, int) else f"{value:.2f} s")
        else:
            table.add_section()
    console.print(table)
    for violation in report.violations[:50]:
        console.print(violation, markup=False, highlight=False)
    console.print("No violation." if report.holds else "There are violations: see above.")


def _rows(report: Report) -> Iterator[tuple[str, Any]]:
    yield from (
        (f"fault: {kind.replace('_', ' ')}", count) for kind, count in report.faults.items()
    )
    yield "", 0
    yield "jobs", report.jobs
    yield "acknowledged", report.acknowledged
    yield "attempts", report.attempts
    yield from ((f"jobs {state}", count) for state, count in report.states.items())
    yield from ((f"response: {kind}", count) for kind, count in report.responses.items())
    yield "", 0
    yield from ((f"flows: {what}", count) for what, count in report.flows.items())
    yield "", 0
    yield from ((f"ran again after: {cause}", count) for cause, count in report.second_runs.items())
    yield "stale writes of workers rejected", report.stale_rejected_by_workers
    yield "lanes left without a holder by a crash", report.lanes_freed
    yield "stale writes of killed workers rejected", sum(report.stale_rejected_of_ghosts.values())
    yield "", 0
    yield from report.violation_counts.items()
    yield "", 0
    for what, by_kind in (
        ("new primary", report.new_primary_seconds),
        ("first job", report.first_job_seconds),
    ):
        for kind, seconds in by_kind.items():
            shown = kind.replace("_", " ")
            yield f"{shown}: until the {what}, median of {len(seconds)}", median(seconds)
            yield f"{shown}: until the {what}, worst", max(seconds)
    yield "slowest recovery of a killed worker's job", report.worst_recovery_seconds
    yield "the same with other faults", report.worst_disturbed_recovery_seconds
    yield "longest standstill after the store was up", report.worst_standstill_seconds
    yield "from the last fault until all jobs had ended", report.drained_after_seconds
