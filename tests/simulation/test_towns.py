"""Programs with tenants: each is served, nothing crosses, and one that is away stops nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import (
    QUEUES,
    Call,
    JobPlan,
    Scenario,
    TenantFault,
    TenantPlan,
    WorkerPlan,
    random_scenario,
)
from freehold.lab.simulation.world import SimulationResult
from tests.simulation.tenant_bugs import TENANT_BUGS

_WORKER = WorkerPlan(0.0, "w1", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
_ACME, _BETA = (TenantPlan(name, "home", 1.0, None) for name in ("acme", "beta"))
_CALLS = tuple(Call(0.1, number, (JobPlan(),), idempotent=True) for number in (1, 2, 3, 4))
_PROGRAM = Scenario(0, (_WORKER,), _CALLS, (), (), tenants=(_ACME, _BETA))


def _started(played: SimulationResult, tenant: str) -> list[float]:
    return [
        at / 1e6
        for at, _, text in played.story
        if text.startswith(f"{tenant}: started") and f"tenant={tenant}" in text
    ]


def test_every_fifth_seed_has_tenants() -> None:
    tenanted = [seed for seed in range(100) if random_scenario(seed).tenants]
    assert len(tenanted) == 20


@pytest.mark.requirement("S4.2")
def test_the_same_machine_runs_the_jobs_of_all_tenants() -> None:
    played = run_scenario(_PROGRAM)
    assert played.violations == []
    assert (played.tenants, played.jobs) == (2, 4)
    assert len(_started(played, "acme")) == len(_started(played, "beta")) == 2


@pytest.mark.requirement("S4.2")
def test_while_the_store_of_one_stays_away_the_others_go_on() -> None:
    away = TenantFault(0.05, "store_stays_away", "beta", 0.0)
    played = run_scenario(replace(_PROGRAM, mishaps=(away,)))
    back = next(at / 1e6 for at, _, text in played.story if text == "beta: is back")
    assert played.violations == []
    assert max(_started(played, "acme")) < 2.0
    assert min(_started(played, "beta")) > back


def test_a_paused_tenant_waits_and_the_others_do_not() -> None:
    paused = TenantFault(0.05, "tenant_paused", "beta", 4.0)
    played = run_scenario(replace(_PROGRAM, mishaps=(paused,)))
    assert played.violations == []
    assert max(_started(played, "acme")) < 2.0
    assert min(_started(played, "beta")) > 4.0


def test_a_job_in_another_tenant_s_name_is_told_as_such() -> None:
    with TENANT_BUGS["a job runs in another tenant's name"].plant():
        played = run_scenario(_PROGRAM)
    assert "S4.2" in {violation.rule for violation in played.afterwards}
    assert any("beta:c1.0" in violation.text for violation in played.afterwards)


def test_what_was_put_aside_comes_back_when_its_tenant_works_again() -> None:
    """By whoever knows the task, though the store was away when that machine first looked."""
    old = replace(_WORKER, knows_newer=False)
    newer = Call(0.1, 1, (JobPlan(task="newer"),), idempotent=True)
    away = TenantFault(3.0, "store_stays_away", "beta", 0.0)
    played = run_scenario(
        replace(_PROGRAM, workers=(old,), calls=(newer, _CALLS[1]), mishaps=(away,))
    )
    assert played.violations == []
    assert len(_started(played, "beta")) == 1
