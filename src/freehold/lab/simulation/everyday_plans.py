"""Parts that only some scenarios have: schedules, bulk operations, and options of single jobs."""

from __future__ import annotations

import random
from dataclasses import dataclass

from freehold.model.bulk import BulkVerb
from freehold.model.schedule import CatchUp, Overlap
from freehold.model.state import State
from freehold.model.waiting import Debounce, Throttle, Unique, WaitingOption

#: Few keys, so that calls meet the job of another call. All are of one task.
WAITING_KEYS: tuple[WaitingOption, ...] = (
    Unique("a", until="start"),
    Unique("b", until="start", replace=("args",)),
    Debounce("c", seconds=1.0, at_most=3.0),
    Throttle("d", seconds=1.5),
)
#: The tag by which the checker finds the jobs of a key.
KEY_TAG = "key:"
_BULKS = (
    (BulkVerb.CANCEL, State.QUEUED),
    (BulkVerb.PAUSE, State.QUEUED),
    (BulkVerb.RESUME, State.PAUSED),
    (BulkVerb.RETRY, State.FAILED),
    (BulkVerb.RETRY, State.CANCELED),
)


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """A schedule that an operator puts, and puts again with other intervals. ``edits``: times and
    intervals."""

    at: float
    name: str
    every: float
    overlap: Overlap
    catch_up: CatchUp
    edits: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """One verb on all jobs that are in a state at that time, for the workers to carry out."""

    at: float
    number: int
    verb: BulkVerb
    state: State


def schedule_plans(chance: random.Random, horizon: float) -> tuple[SchedulePlan, ...]:
    """Intervals of seconds, so that many ticks meet a fault. Some are edited while they fire."""
    return tuple(
        SchedulePlan(
            at=round(chance.uniform(0.0, 2.0), 3),
            name=f"s{number}",
            every=round(chance.uniform(1.0, 2.5), 3),
            overlap=chance.choice(("allow", "allow", "skip", "queue", "cancel")),
            catch_up=chance.choice(("all", "all", "last")),
            edits=tuple(
                (round(chance.uniform(0.0, horizon), 3), round(chance.uniform(1.0, 2.5), 3))
                for _ in range(chance.choice((0, 0, 1, 2)))
            ),
        )
        for number in range(1, chance.choice((2, 3, 4)) + 1)
    )


def bulk_plans(chance: random.Random, horizon: float) -> tuple[BulkPlan, ...]:
    return tuple(
        BulkPlan(round(chance.uniform(0.5, horizon), 3), number, *chance.choice(_BULKS))
        for number in range(1, chance.choice((2, 3, 4)) + 1)
    )


def keyed_calls(chance: random.Random, horizon: float) -> list[tuple[float, WaitingOption]]:
    """Several calls with each key, most of them while the job of another one waits."""
    calls = []
    for key in WAITING_KEYS:
        began = chance.uniform(0.0, horizon / 2)
        times = [began + chance.uniform(0.0, 3.0) for _ in range(5)]
        calls += [(round(at, 3), key) for at in times]
    return sorted(calls, key=lambda call: call[0])


def start_by(chance: random.Random) -> float | None:
    return chance.choice((0.02, 0.3, 1.0, 3.0)) if chance.random() < 0.4 else None
