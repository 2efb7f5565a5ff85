"""A failing program made small: parts are left out as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from freehold.lab.simulation.network import NO_NOISE
from freehold.lab.simulation.scenario import Scenario

_PARTS = ("faults", "operations", "calls", "workers", "limits", "queue_limits", "mishaps")
#: Each try is a whole run.
TRIES = 300

Fails = Callable[[Scenario], bool]


def shrink(program: Scenario, fails: Fails, tries: int = TRIES) -> Scenario:
    """The smallest that was found. ``fails`` says whether a program still shows the fault."""
    left = _Tries(fails, tries)
    smaller = True
    while smaller and left.count > 0:
        before = program
        if program.noise != NO_NOISE:
            program = left.first_failing(program, [replace(program, noise=NO_NOISE)])
        for part in _PARTS:
            program = _without(program, part, left)
        program = left.each(program, _simpler_calls)
        smaller = program != before
    return program


class _Tries:
    def __init__(self, fails: Fails, count: int) -> None:
        self._fails = fails
        self.count = count

    def first_failing(self, program: Scenario, candidates: list[Scenario]) -> Scenario:
        for candidate in candidates:
            if self.count <= 0:
                break
            self.count -= 1
            if self._fails(candidate):
                return candidate
        return program

    def each(
        self, program: Scenario, simpler: Callable[[Scenario], Iterator[Scenario]]
    ) -> Scenario:
        """Take every simplification that still fails, one after the other."""
        while True:
            found = self.first_failing(program, list(simpler(program)))
            if found is program:
                return program
            program = found


def _without(program: Scenario, part: str, left: _Tries) -> Scenario:
    """Large pieces first, then ever smaller ones."""
    size = max(1, len(getattr(program, part)) // 2)
    while size >= 1:
        start = 0
        while start < len(getattr(program, part)):
            items: tuple[Any, ...] = getattr(program, part)
            rest = items[:start] + items[start + size :]
            changes: dict[str, Any] = {part: rest}
            candidate = replace(program, **changes)
            found = left.first_failing(program, [candidate])
            start += size if found is program else 0
            program = found
        size //= 2
    return program


def _simpler_calls(program: Scenario) -> Iterator[Scenario]:
    """Fewer jobs in a call, fewer runs in a job, fewer repetitions."""
    for index, call in enumerate(program.calls):
        simpler = [
            replace(call, jobs=call.jobs[:place] + call.jobs[place + 1 :])
            for place in range(len(call.jobs))
            if len(call.jobs) > 1
        ]
        simpler += [
            replace(
                call,
                jobs=(
                    *call.jobs[:place],
                    replace(job, runs=job.runs[:-1]),
                    *call.jobs[place + 1 :],
                ),
            )
            for place, job in enumerate(call.jobs)
            if job.runs
        ]
        if call.repeats > 1:
            simpler.append(replace(call, repeats=1))
        for each in simpler:
            calls = (*program.calls[:index], each, *program.calls[index + 1 :])
            yield replace(program, calls=calls)
