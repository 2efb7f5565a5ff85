"""A failing scenario is shrunk, and its trace is readable."""

from __future__ import annotations

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import Scenario, random_scenario
from freehold.lab.simulation.shrink import shrink
from freehold.lab.simulation.trace import trace_lines
from tests.simulation.bugs import BUGS

_BUG = BUGS["a promotion is lost"]


def _fails(scenario: Scenario) -> bool:
    with _BUG.plant():
        return any(violation.rule == "I9" for violation in run_scenario(scenario).violations)


def _parts(scenario: Scenario) -> int:
    calls = sum(len(call.jobs) for call in scenario.calls)
    return len(scenario.workers) + calls + len(scenario.operations) + len(scenario.faults)


def test_a_failing_scenario_is_shrunk() -> None:
    scenario = random_scenario(_BUG.seeds[0])
    small = shrink(scenario, _fails, max_tries=120)
    assert _fails(small)
    assert _parts(small) <= 6 < _parts(scenario)
    assert not run_scenario(small).violations, "without the bug it has no violation"


def test_a_trace_has_the_violation_and_what_every_machine_did() -> None:
    scenario = random_scenario(_BUG.seeds[0])
    with _BUG.plant():
        trace = list(trace_lines(run_scenario(scenario)))
    assert any(line.startswith("  violation: I9") for line in trace)
    assert any("started job" in line and "w1" in line for line in trace)
    assert any("healed" in line for line in trace)
