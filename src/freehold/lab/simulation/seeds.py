"""Many seeds, and what they reached together."""

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

#: In the table of states, but no statement writes it: a claim writes assigned, and running
#: follows when it is seen.
NEVER_WRITTEN = frozenset({(State.QUEUED, State.RUNNING)})
#: Told by a job's row, never kept as an event.
_NO_EVENTS = frozenset({EventKind.CREATED, EventKind.LEASED, EventKind.STARTED})
FAULTS = (
    "fail_before",
    "unknown_before",
    "fail_after",
    "doubled",
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
    "store_away",
    "store_hangs",
    "store_stays_away",
)
#: Fewer are not worth other processes.
_FEW = 60
_PIECE = 10


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
    #: The seeds that failed, each with what was broken.
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

    def add(self, played: SimulationResult) -> None:
        self.seeds += 1
        self.tenants += played.tenants
        self.jobs += played.jobs
        self.attempts += played.attempts
        self.statements += played.statements
        self.faults.update(played.faults)
        self.events.update(played.events)
        self.states.update({str(state): n for state, n in played.states.items()})
        self.transitions.update(
            {f"{a} -> {b}": n for (a, b), n in played.transitions.items() if a is not None}
        )
        if played.violations:
            self.failed[played.program.seed] = [str(each) for each in played.violations]

    @property
    def missed(self) -> list[str]:
        """What no run has reached."""
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
    """On all processors, if there are many: seeds know nothing of each other."""
    swept = SeedSummary()
    for part in _parts(first, count):
        swept.merge(part)
        after_each(swept)
    return swept


def _parts(first: int, count: int) -> Iterator[SeedSummary]:
    if count < _FEW:
        yield from (_part(range(seed, seed + 1)) for seed in range(first, first + count))
        return
    end = first + count
    pieces = [range(seed, min(seed + _PIECE, end)) for seed in range(first, end, _PIECE)]
    # Not forked: whoever calls this may have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(mp_context=context, initializer=_end_with_parent) as pool:
        yield from pool.map(_part, pieces)


def _end_with_parent() -> None:
    """If that is killed, nobody tells its children, who would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _part(seeds: Iterable[int]) -> SeedSummary:
    swept = SeedSummary()
    for seed in seeds:
        swept.add(run_scenario(random_scenario(seed)))
    return swept


def smallest(seed: int) -> SimulationResult:
    """The smallest program that breaks the first promise which this seed breaks."""
    rule = run_scenario(random_scenario(seed)).violations[0].rule

    def fails(program: Scenario) -> bool:
        return any(violation.rule == rule for violation in run_scenario(program).violations)

    return run_scenario(shrink(random_scenario(seed), fails))
