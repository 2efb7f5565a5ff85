"""Scenarios with tenants: each is served by itself, and one with its store down delays no other."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import (
    QUEUES,
    Call,
    JobPlan,
    Scenario,
    WorkerPlan,
    random_scenario,
)
from freehold.lab.simulation.shards import is_work
from freehold.lab.simulation.tenant_plans import TenantFault, TenantPlan
from freehold.lab.simulation.world import SimulationResult
from freehold.store.types import SweepCheck
from tests.simulation.tenant_bugs import TENANT_BUGS

_WORKER = WorkerPlan(0.0, "w1", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
_ACME, _BETA = (TenantPlan(name, "home", 1.0, None) for name in ("acme", "beta"))
_CALLS = tuple(Call(0.1, number, (JobPlan(),), idempotent=True) for number in (1, 2, 3, 4))
_SCENARIO = Scenario(0, (_WORKER,), _CALLS, (), (), tenants=(_ACME, _BETA))


def _started(result: SimulationResult, tenant: str) -> list[float]:
    return [
        at / 1e6
        for at, _, text in result.trace
        if text.startswith(f"{tenant}: started") and f"tenant={tenant}" in text
    ]


def test_every_fifth_seed_has_tenants() -> None:
    with_tenants = [seed for seed in range(100) if random_scenario(seed).tenants]
    assert len(with_tenants) == 20


@pytest.mark.requirement("S4.2")
def test_the_same_machine_runs_the_jobs_of_all_tenants() -> None:
    result = run_scenario(_SCENARIO)
    assert result.violations == []
    assert (result.tenants, result.jobs) == (2, 4)
    assert len(_started(result, "acme")) == len(_started(result, "beta")) == 2


@pytest.mark.requirement("S4.2")
def test_the_other_tenants_run_while_the_store_of_one_stays_down() -> None:
    down = TenantFault(0.05, "store_stays_down", "beta", 0.0)
    result = run_scenario(replace(_SCENARIO, tenant_faults=(down,)))
    up = next(at / 1e6 for at, _, text in result.trace if text == "beta: is up")
    assert result.violations == []
    assert max(_started(result, "acme")) < 2.0
    assert min(_started(result, "beta")) > up


def test_a_paused_tenant_waits_and_the_others_do_not() -> None:
    paused = TenantFault(0.05, "tenant_paused", "beta", 4.0)
    result = run_scenario(replace(_SCENARIO, tenant_faults=(paused,)))
    assert result.violations == []
    assert max(_started(result, "acme")) < 2.0
    assert min(_started(result, "beta")) > 4.0


def test_tenants_have_flows_too() -> None:
    """Also a gather: its children are jobs of the same tenant."""
    scenario = random_scenario(51)
    assert scenario.tenants
    assert scenario.flows
    assert run_scenario(scenario).violations == []


def test_a_tenant_with_nothing_but_a_flow_to_act_upon_gets_a_worker() -> None:
    nothing = SweepCheck(
        expired=False,
        limited=False,
        ended_lane_pauses=False,
        parked=False,
        misfits=False,
        due_seconds=None,
        schedule_seconds=4.0,
        late_seconds=None,
        bulk=False,
        signals=False,
        flows=False,
        workers=0,
    )
    assert not is_work(nothing)
    assert is_work(msgspec.structs.replace(nothing, flows=True))
    assert is_work(msgspec.structs.replace(nothing, schedule_seconds=0.0))
    assert not is_work(msgspec.structs.replace(nothing, parked=True)), "maintenance looks for it"


def test_a_job_that_runs_for_another_tenant_is_a_violation() -> None:
    with TENANT_BUGS["a job runs for another tenant"].plant():
        result = run_scenario(_SCENARIO)
    assert "S4.2" in {violation.rule for violation in result.found_after}
    assert any("beta:c1.0" in violation.text for violation in result.found_after)


def test_a_parked_job_runs_once_its_tenant_works_again() -> None:
    """On a worker that knows the task, though the store was down when it first checked."""
    old = replace(_WORKER, knows_newer=False)
    newer = Call(0.1, 1, (JobPlan(task="newer"),), idempotent=True)
    down = TenantFault(3.0, "store_stays_down", "beta", 0.0)
    result = run_scenario(
        replace(_SCENARIO, workers=(old,), calls=(newer, _CALLS[1]), tenant_faults=(down,))
    )
    assert result.violations == []
    assert len(_started(result, "beta")) == 1
