"""Rounds: each contender once in each, so that a slow minute of the machine affects all of them."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import machine
from bench.fleet import MeasurementFailed

#: One measurement of one contender in one round: figures by name, possibly nested.
Measure = Callable[[], dict[str, Any]]


@dataclass
class Run:
    """The figures by contender and round, and the measurements that failed."""

    name: str
    details: dict[str, Any]
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    load: list[float] = field(default_factory=lambda: [machine.load_average()])

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **machine.describe(),
            **self.details,
            "load_average": self.load,
            "medians": {name: medians(found) for name, found in self.rounds.items()},
            "rounds": self.rounds,
            "failures": self.failures,
        }


def run_interleaved(
    run: Run, contenders: Mapping[str, Measure], rounds: int, out: Path | None = None
) -> None:
    """``out`` is written after each step, so that an interrupted run leaves its figures."""
    for number in range(rounds):
        # Rotate the order, so that no contender always follows the same one.
        names = list(contenders)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            began = time.monotonic()
            try:
                figures = contenders[name]()
            except MeasurementFailed as error:
                run.failures.append({"contender": name, "round": number, "error": str(error)})
                sys.stderr.write(f"round {number + 1}  {name}: {error}\n")
            else:
                run.rounds.setdefault(name, []).append(figures)
                seconds = time.monotonic() - began
                sys.stderr.write(f"round {number + 1}  {name:24} {seconds:5.1f} s\n")
            if out is not None:
                out.write_text(json.dumps(run.document(), indent=1) + "\n")
        run.load.append(machine.load_average())


def medians(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of each figure over the rounds that have it."""
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in rounds for name in each):
        values = [each[name] for each in rounds if name in each]
        if all(isinstance(value, Mapping) for value in values):
            result[name] = medians(values)
        else:
            result[name] = round(statistics.median(values), 4)
    return result
