"""An error of the simulation's own checks is reported as such, and disturbs no job."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.lab.simulation.invariants import InvariantChecker
from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import QUEUES, Call, JobPlan, Scenario, WorkerPlan

_WORKER = WorkerPlan(0.0, "w1", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
_CALL = Call(0.1, 1, (JobPlan("stepped", parts=(("step", "one", 0.1),)),), idempotent=True)
_SCENARIO = Scenario(0, (_WORKER,), (_CALL,), (), ())


def test_an_error_of_an_invariant_is_a_violation_and_no_error_of_the_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("of the check")

    monkeypatch.setattr(InvariantChecker, "_check_steps", broken)
    result = run_scenario(_SCENARIO)
    (violation,) = result.violations
    assert violation.rule == "check"
    assert "put_steps of w1" in violation.text
    assert "KeyError('of the check') at test_check_errors.py" in violation.text
    assert result.attempts == 1, "the handler was not disturbed"
