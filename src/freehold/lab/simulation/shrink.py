"""Shrinks a failing scenario: leaves out parts as long as it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from freehold.lab.simulation.link_noise import NO_NOISE
from freehold.lab.simulation.scenario import Scenario

_PARTS = (
    "faults",
    "operations",
    "calls",
    "workers",
    "limits",
    "queue_limits",
    "tenant_faults",
    "schedules",
    "bulks",
    "flows",
    "flow_actions",
)
#: Each try is a complete run.
MAX_TRIES = 300

Fails = Callable[[Scenario], bool]


def shrink(scenario: Scenario, fails: Fails, max_tries: int = MAX_TRIES) -> Scenario:
    """Returns the smallest scenario found for which ``fails`` is true."""
    tries = _Budget(fails, max_tries)
    is_smaller = True
    while is_smaller and tries.count > 0:
        before = scenario
        if scenario.noise != NO_NOISE:
            scenario = tries.first_failing(scenario, [replace(scenario, noise=NO_NOISE)])
        for part in _PARTS:
            scenario = _without(scenario, part, tries)
        scenario = tries.each(scenario, _simpler_calls)
        is_smaller = scenario != before
    return scenario


class _Budget:
    def __init__(self, fails: Fails, count: int) -> None:
        self._fails = fails
        self.count = count

    def first_failing(self, scenario: Scenario, candidates: list[Scenario]) -> Scenario:
        for candidate in candidates:
            if self.count <= 0:
                break
            self.count -= 1
            if self._fails(candidate):
                return candidate
        return scenario

    def each(
        self, scenario: Scenario, simpler: Callable[[Scenario], Iterator[Scenario]]
    ) -> Scenario:
        """Applies every simplification that still fails, one after another."""
        while True:
            found = self.first_failing(scenario, list(simpler(scenario)))
            if found is scenario:
                return scenario
            scenario = found


def _without(scenario: Scenario, part: str, tries: _Budget) -> Scenario:
    """Leaves out large pieces first, then ever smaller ones."""
    size = max(1, len(getattr(scenario, part)) // 2)
    while size >= 1:
        start = 0
        while start < len(getattr(scenario, part)):
            items: tuple[Any, ...] = getattr(scenario, part)
            remaining = items[:start] + items[start + size :]
            changes: dict[str, Any] = {part: remaining}
            candidate = replace(scenario, **changes)
            found = tries.first_failing(scenario, [candidate])
            start += size if found is scenario else 0
            scenario = found
        size //= 2
    return scenario


def _simpler_calls(scenario: Scenario) -> Iterator[Scenario]:
    """Fewer jobs in a call, fewer runs of a job, fewer repeats."""
    for call_index, call in enumerate(scenario.calls):
        simpler = [
            replace(call, jobs=call.jobs[:job_index] + call.jobs[job_index + 1 :])
            for job_index in range(len(call.jobs))
            if len(call.jobs) > 1
        ]
        simpler += [
            replace(
                call,
                jobs=(
                    *call.jobs[:job_index],
                    replace(job, runs=job.runs[:-1]),
                    *call.jobs[job_index + 1 :],
                ),
            )
            for job_index, job in enumerate(call.jobs)
            if job.runs
        ]
        if call.repeats > 1:
            simpler.append(replace(call, repeats=1))
        for each in simpler:
            calls = (*scenario.calls[:call_index], each, *scenario.calls[call_index + 1 :])
            yield replace(scenario, calls=calls)
