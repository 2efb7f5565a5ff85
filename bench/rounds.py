"""Rounds: everybody once in each, so that a slow minute of the machine hits all of them."""

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
from bench.fleet import Trouble

#: One measurement of one contender in one round: figures by name, possibly nested.
Work = Callable[[], dict[str, Any]]


@dataclass
class Run:
    """What was measured, by contender and round; and what went wrong."""

    name: str
    told: dict[str, Any]
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    troubles: list[dict[str, Any]] = field(default_factory=list)
    load: list[float] = field(default_factory=lambda: [machine.load_average()])

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **machine.described(),
            **self.told,
            "load_average": self.load,
            "medians": {who: medians(found) for who, found in self.rounds.items()},
            "rounds": self.rounds,
            "troubles": self.troubles,
        }


def interleaved(
    run: Run, contenders: Mapping[str, Work], rounds: int, keep: Path | None = None
) -> None:
    """``keep``: written after each step, so that an interrupted run has not been for nothing."""
    for number in range(rounds):
        # Each round begins with another, so that nobody always comes after the same one.
        names = list(contenders)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            began = time.monotonic()
            try:
                found = contenders[name]()
            except Trouble as trouble:
                run.troubles.append({"who": name, "round": number, "what": str(trouble)})
                sys.stderr.write(f"round {number + 1}  {name}: {trouble}\n")
            else:
                run.rounds.setdefault(name, []).append(found)
                seconds = time.monotonic() - began
                sys.stderr.write(f"round {number + 1}  {name:24} {seconds:5.1f} s\n")
            if keep is not None:
                keep.write_text(json.dumps(run.document(), indent=1) + "\n")
        run.load.append(machine.load_average())


def medians(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of each figure over the rounds that have it."""
    answer: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in found for name in each):
        values = [each[name] for each in found if name in each]
        if all(isinstance(value, Mapping) for value in values):
            answer[name] = medians(values)
        else:
            answer[name] = round(statistics.median(values), 4)
    return answer
