"""Runs many seeds and sums up what they reached."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import Scenario, random_scenario
from freehold.lab.simulation.shrink import shrink
from freehold.lab.simulation.world import SimulationResult
from freehold.model.history import EventKind
from freehold.model.state import TRANSITIONS, State

#: In the table of transitions, but no statement writes it: a claim writes assigned, and the start
#: writes running. A failed node that waits again is written, but no seed so far has come to it.
NEVER_WRITTEN = frozenset({(State.QUEUED, State.RUNNING), (State.FAILED, State.PENDING)})
#: These kinds are derived from the job's row and never stored as events.
#: Columns of a job; and amendments, which the simulated operators do not make.
_NO_EVENTS = frozenset({EventKind.CREATED, EventKind.LEASED, EventKind.STARTED, EventKind.AMENDED})
FAULTS = (
    "fail_before",
    "unknown_before",
    "fail_after",
    "duplicated",
    "slow",
    "late",
    "arrived_late",
    "sent_before_death",
    "cut_off",
    "crash",
    "freeze",
    "cut",
    "hang",
    "drain",
    "manager_crash",
    "tenant_paused",
    "store_down",
    "store_hangs",
    "store_stays_down",
)
#: Fewer seeds run in this process.
_MIN_FOR_PROCESSES = 60
_CHUNK = 10


@dataclass(slots=True)
class SeedSummary:
    """The sum of many runs."""

    seeds: int = 0
    tenants: int = 0
    jobs: int = 0
    attempts: int = 0
    statements: int = 0
    faults: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FAULTS, 0)))
    states: Counter[str] = field(default_factory=lambda: Counter({str(s): 0 for s in State}))
    transitions: Counter[str] = field(default_factory=lambda: Counter(_possible()))
    events: Counter[str] = field(
        default_factory=lambda: Counter({str(k): 0 for k in EventKind if k not in _NO_EVENTS})
    )
    #: The seeds that failed, each with its violations.
    failed: dict[int, list[str]] = field(default_factory=dict)

    def merge(self, other: SeedSummary) -> None:
        self.seeds += other.seeds
        self.tenants += other.tenants
        self.jobs += other.jobs
        self.attempts += other.attempts
        self.statements += other.statements
        self.faults.update(other.faults)
        self.states.update(other.states)
        self.transitions.update(other.transitions)
        self.events.update(other.events)
        self.failed.update(other.failed)

    def add(self, result: SimulationResult) -> None:
        self.seeds += 1
        self.tenants += result.tenants
        self.jobs += result.jobs
        self.attempts += result.attempts
        self.statements += result.statements
        self.faults.update(result.faults)
        self.events.update(result.events)
        self.states.update({str(state): n for state, n in result.states.items()})
        self.transitions.update(
            {f"{a} -> {b}": n for (a, b), n in result.transitions.items() if a is not None}
        )
        if result.violations:
            self.failed[result.scenario.seed] = [str(each) for each in result.violations]

    @property
    def missed(self) -> list[str]:
        """The faults, states, transitions and events that no run has reached."""
        counters = (self.faults, self.states, self.transitions, self.events)
        return [name for counter in counters for name, count in counter.items() if not count]


def _possible() -> dict[str, int]:
    return {
        f"{source} -> {goal}": 0
        for source, goals in TRANSITIONS.items()
        for goal in sorted(goals)
        if (source, goal) not in NEVER_WRITTEN
    }


def run_seeds(first: int, count: int, after_each: Callable[[SeedSummary], None]) -> SeedSummary:
    """Many seeds run on all processors, because they are independent of each other."""
    summary = SeedSummary()
    for part in _run_parts(first, count):
        summary.merge(part)
        after_each(summary)
    return summary


def _run_parts(first: int, count: int) -> Iterator[SeedSummary]:
    if count < _MIN_FOR_PROCESSES:
        yield from (_run_part(range(seed, seed + 1)) for seed in range(first, first + count))
        return
    end = first + count
    chunks = [range(seed, min(seed + _CHUNK, end)) for seed in range(first, end, _CHUNK)]
    # Spawned, not forked, because the caller may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=context, initializer=_end_with_parent) as pool:
        yield from pool.map(_run_part, chunks)


def _end_with_parent() -> None:
    """Ends this process with its parent. Without this, the children of a killed parent would wait
    for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run_part(seeds: Iterable[int]) -> SeedSummary:
    summary = SeedSummary()
    for seed in seeds:
        summary.add(run_scenario(random_scenario(seed)))
    return summary


def smallest(seed: int) -> SimulationResult:
    """Runs the smallest scenario that violates the same rule as this seed does first."""
    rule = run_scenario(random_scenario(seed)).violations[0].rule

    def fails(scenario: Scenario) -> bool:
        return any(violation.rule == rule for violation in run_scenario(scenario).violations)

    return run_scenario(shrink(random_scenario(seed), fails))
