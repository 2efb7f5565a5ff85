"""A failing run is made small, and can be read."""

from __future__ import annotations

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import Scenario, random_scenario
from freehold.lab.simulation.shrink import shrink
from freehold.lab.simulation.trace import trace_lines
from tests.simulation.bugs import BUGS

_BUG = BUGS["a promotion is lost"]


def _fails(program: Scenario) -> bool:
    with _BUG.plant():
        return any(violation.rule == "I9" for violation in run_scenario(program).violations)


def _parts(program: Scenario) -> int:
    calls = sum(len(call.jobs) for call in program.calls)
    return len(program.workers) + calls + len(program.operations) + len(program.faults)


def test_a_failing_program_is_shrunk_to_what_matters() -> None:
    program = random_scenario(_BUG.seeds[0])
    small = shrink(program, _fails, tries=120)
    assert _fails(small)
    assert _parts(small) <= 6 < _parts(program)
    assert not run_scenario(small).violations, "without the bug it is a good program"


def test_a_story_tells_who_did_what_when() -> None:
    program = random_scenario(_BUG.seeds[0])
    with _BUG.plant():
        story = list(trace_lines(run_scenario(program)))
    assert any(line.startswith("  broken: I9") for line in story)
    assert any("started job" in line and "w1" in line for line in story)
    assert any("healed" in line for line in story)
