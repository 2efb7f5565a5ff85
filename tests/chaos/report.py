"""The table at the end, for people and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tests.chaos.judging import Judgement

#: Rows of the table -> the rules whose violations they count.
_PROMISES = {
    "lost": ("I1", "I9"),
    "unexplained second runs": ("I4",),
    "stale writes accepted": ("I2",),
    "lane inversions and overlaps": ("I3",),
    "budgets broken": ("I5", "P7", "S3.3", "S2.7", "S4.9", "S4.10", "S1.1"),
    "unique keys broken": ("I6",),
    "dishonest answers": ("I10",),
    "limits broken": ("S0.10",),
}


class Report(msgspec.Struct, frozen=True):
    """One run."""

    store: str
    seed: int
    minutes: float
    jobs: int
    acknowledged: int
    attempts: int
    states: dict[str, int]
    faults: dict[str, int]
    doubled: dict[str, int]
    answers: dict[str, int]
    stale_rejected_by_workers: int
    lanes_freed: int
    stale_rejected_of_ghosts: dict[str, int]
    worst_recovery_seconds: float
    worst_disturbed_recovery_seconds: float
    worst_standstill_seconds: float
    drained_after_seconds: float
    promises: dict[str, int]
    violations: list[str]

    @property
    def holds(self) -> bool:
        return not self.violations


def promises_of(judgement: Judgement, ghosts_accepted: int) -> dict[str, int]:
    found = {name: judgement.of_rules(*rules) for name, rules in _PROMISES.items()}
    found["stale writes accepted"] += ghosts_accepted
    known = {rule for rules in _PROMISES.values() for rule in rules}
    found["others"] = sum(violation.rule not in known for violation in judgement.violations)
    return found


def show(report: Report, console: Console) -> None:
    table = Table(title=f"Chaos on {report.store}, {report.minutes:g} minutes, seed {report.seed}")
    table.add_column("What")
    table.add_column("Count", justify="right")
    for name, value in _rows(report):
        if name:
            table.add_row(name, f"{value:,}" if isinstance(value, int) else f"{value:.2f} s")
        else:
            table.add_section()
    console.print(table)
    for violation in report.violations[:50]:
        console.print(violation, markup=False, highlight=False)
    console.print("Everything held." if report.holds else "Broken promises: see above.")


def _rows(report: Report) -> Iterator[tuple[str, Any]]:
    yield from (
        (f"fault: {kind.replace('_', ' ')}", count) for kind, count in report.faults.items()
    )
    yield "", 0
    yield "jobs", report.jobs
    yield "acknowledged", report.acknowledged
    yield "attempts", report.attempts
    yield from ((f"jobs {state}", count) for state, count in report.states.items())
    yield from ((f"told: {answer}", count) for answer, count in report.answers.items())
    yield "", 0
    yield from ((f"ran again after: {cause}", count) for cause, count in report.doubled.items())
    yield "stale writes rejected, of workers", report.stale_rejected_by_workers
    yield "lanes that a crash left without a holder", report.lanes_freed
    yield "stale writes rejected, of ghosts", sum(report.stale_rejected_of_ghosts.values())
    yield "", 0
    yield from report.promises.items()
    yield "", 0
    yield "worst recovery of a killed worker's job", report.worst_recovery_seconds
    yield "the same while other faults happened", report.worst_disturbed_recovery_seconds
    yield "worst standstill after the store came back", report.worst_standstill_seconds
    yield "all had ended after the last fault by", report.drained_after_seconds
