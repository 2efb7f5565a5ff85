"""Records that once misled the checker: what it found was no violation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from freehold.lab.checker.checker import check
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.faults import A_COMMIT
from freehold.lab.checker.record import Record
from freehold.lab.simulation.network import Link
from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import QUEUES, Call, JobPlan, Scenario, WorkerPlan
from freehold.lab.simulation.step_plans import SignalPlan
from freehold.lab.simulation.world import SimulationResult
from freehold.model.state import Stage, State
from tests.model.builders import a_job
from tests.simulation.step_bugs import STEP_BUGS

_ASKED = {"waits": True, "waiting": "unique.b", "replaces": True, "throttle": None}


def _call(name: str, at: int, **response: Any) -> Iterator[Record]:
    """A call that replaces the job that waits with the key b."""
    yield Record(at, "c", "requested", call=name, info={"verb": "enqueue", "jobs": [_ASKED]})
    yield Record(at + 1, "c", "responded", call=name, info={"verb": "enqueue", **response})


def _rules_of(*calls: Iterator[Record]) -> set[str]:
    """With a job that has the arguments of the first call."""
    job = a_job(
        id=1, args='{"call": "c1.0"}', tags=("key:unique.b",), state=State.QUEUED, stage=Stage.READY
    )
    records = [record for each in calls for record in each]
    return {each.rule for each in check(Evidence(records, {1: job}, {}))}


def test_a_call_without_a_known_outcome_may_replace_a_job_after_later_calls() -> None:
    """Its write was executed when its caller had given it up, and others had called since."""
    unknown = _call("c1", 10, error="OutcomeUnknown")
    assert "N4" not in _rules_of(unknown, _call("c2", 20, results=[[1, True]]))


def test_a_confirmed_call_replaces_no_job_after_later_calls() -> None:
    confirmed = _call("c1", 10, results=[[1, True]])
    assert "N4" in _rules_of(confirmed, _call("c2", 20, results=[[1, False]]))


def _with_a_lost_commit(
    monkeypatch: pytest.MonkeyPatch, *, with_a_fault: bool = True
) -> SimulationResult:
    """The result of the commit of a step is lost, and there is no other fault."""
    is_first = iter([True])

    def fails(link: Link) -> bool:
        is_lost = next(is_first, False)
        if is_lost and with_a_fault:
            link._network.on_fault(link._machine, "fail_after", A_COMMIT)
        return is_lost

    monkeypatch.setattr(Link, "_commit_fails", fails)
    worker = WorkerPlan(0.0, "w1", QUEUES, 1, 1.0, knows_newer=True, grace_seconds=1.0)
    job = JobPlan("stepped", parts=(("transaction", "pay", 0.0),))
    call = Call(0.1, 1, (job,), idempotent=True)
    signals = (SignalPlan(0.1, 1, "unused"),)  # with signals, handlers have a table of their own
    return run_scenario(Scenario(0, (worker,), (call,), (), (), signals=signals))


def test_an_attempt_loses_its_lease_after_a_commit_without_a_known_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = _with_a_lost_commit(monkeypatch)
    assert result.events["lease_lost"] == 1
    assert result.violations == []


def test_no_lease_is_lost_after_a_commit_that_no_fault_has_hit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (violation,) = _with_a_lost_commit(monkeypatch, with_a_fault=False).violations
    assert str(violation).endswith("lost the lease of w1, which had no fault")


def test_an_attempt_writes_nothing_after_a_commit_without_a_known_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with STEP_BUGS["an attempt goes on after a commit without a known outcome"].plant():
        result = _with_a_lost_commit(monkeypatch)
    assert {each.rule for each in result.found_after} == {"I2"}
