"""Parts that only some scenarios have: handlers with steps, sleeps and signals, and the senders."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TypeAlias

#: One part of a handler: its kind (step, transaction, sleep, signal, gather), the name of the step,
#: and how long it takes; for a signal, its timeout, with 0 for none; for a gather, its children.
Part: TypeAlias = tuple[str, str, float]

#: Few names, so that several jobs wait for one signal.
SIGNALS = ("paid", "shipped", "approved")
_SLEEPS = (0.2, 1.3, 3.0)
_TIMEOUTS = (0.0, 0.0, 0.0, 1.2, 3.0)
_JOBS = 8


@dataclass(frozen=True, slots=True)
class SignalPlan:
    """A client that sends a signal. ``at_wait``: later than ``at``, just when the suspension of a
    job that waits for it is in flight; at the latest when all faults are over."""

    at: float
    number: int
    name: str
    at_wait: bool = False


def jobs_with_parts(
    chance: random.Random, horizon: float
) -> list[tuple[float, tuple[Part, ...], tuple[tuple[float, str], ...]]]:
    """The time of its call, the parts and the first runs of each job. They begin early, because a
    suspension takes a part of the time."""
    return [
        (round(chance.uniform(0.0, horizon / 2), 3), _parts(chance), _runs(chance))
        for _ in range(_JOBS)
    ]


def _parts(chance: random.Random) -> tuple[Part, ...]:
    kinds = ["step", chance.choice(("step", "transaction")), "transaction"]
    kinds += chance.choice((["sleep"], ["signal"], ["signal"], ["sleep", "signal"]))
    chance.shuffle(kinds)
    return tuple(_part(chance, kind, f"{kind}{n}") for n, kind in enumerate(kinds, 1))


def _part(chance: random.Random, kind: str, name: str) -> Part:
    match kind:
        case "signal":
            return kind, chance.choice(SIGNALS), chance.choice(_TIMEOUTS)
        case "sleep":
            return kind, name, chance.choice(_SLEEPS)
        case "step":
            return kind, name, chance.choice((0.0, 0.1, 0.6))
    return kind, name, 0.0


def _runs(chance: random.Random) -> tuple[tuple[float, str], ...]:
    hows = ("return", "error", "error", "later", "snooze")
    return tuple(
        (chance.choice((0.0, 0.2, 0.9)), chance.choice(hows))
        for _ in range(chance.choice((1, 2, 3, 4)))
    )


def signal_plans(chance: random.Random, horizon: float) -> tuple[SignalPlan, ...]:
    """Each is sent at least once, so that every job can end."""
    names = SIGNALS + tuple(chance.choice(SIGNALS) for _ in range(2))
    return tuple(
        SignalPlan(
            at=round(chance.uniform(1.0, horizon * 0.9), 3),
            number=number,
            name=name,
            at_wait=chance.random() < 0.5,
        )
        for number, name in enumerate(names, 1)
    )
