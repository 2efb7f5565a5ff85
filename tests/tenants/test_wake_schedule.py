"""Which tenants wake, which are put to sleep, and which are degraded."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from freehold.model.tenant import Tenant, TenantState
from freehold.store.shard import TenantActivity
from freehold.tenants.wake_schedule import (
    IDLE_SECONDS,
    LAST_RETRY_SECONDS,
    SLICE_SECONDS,
    WakeSchedule,
    WorkerActivity,
)

BUSY = WorkerActivity(is_idle=False, has_running_jobs=True)
WAITING = WorkerActivity(is_idle=False, has_running_jobs=False)
IDLE = WorkerActivity(is_idle=True, has_running_jobs=False)


def tenant(name: str, state: TenantState = TenantState.ACTIVE, shard: str = "home") -> Tenant:
    return Tenant(name=name, shard=shard, state=state, created_at=datetime(2030, 1, 1, tzinfo=UTC))


class FakeHost:
    """A schedule, its clock, and the activity of workers as the test sets it."""

    def __init__(self, limit: int, *names: str) -> None:
        self.now = 100.0
        self.schedule = WakeSchedule(limit, lambda: self.now)
        self.activity: dict[str, WorkerActivity] = {}
        self.schedule.update([tenant(name) for name in names])

    def check(self, **has_work: bool) -> None:
        for name, work in has_work.items():
            self.schedule.record_check(TenantActivity(name, work))

    def wake(self) -> list[str]:
        woken = [each.name for each in self.schedule.wake()]
        self.activity |= dict.fromkeys(woken, BUSY)
        return woken

    def to_end(self) -> list[str]:
        return self.schedule.to_end(lambda name: self.activity[name])

    def end(self, *names: str) -> None:
        for name in names:
            self.schedule.worker_ended(name)


@pytest.mark.requirement("S4.2")
def test_only_tenants_with_work_wake() -> None:
    host = FakeHost(10, "a", "b", "c")
    host.check(a=False, b=True, c=False)
    assert host.wake() == ["b"]
    assert host.wake() == []
    host.schedule.request_worker("c")
    assert host.wake() == ["c"]


def test_an_idle_worker_ends_after_a_while_and_wakes_again() -> None:
    host = FakeHost(10, "a")
    host.check(a=True)
    host.wake()
    host.now += 60
    assert host.to_end() == []
    host.activity["a"] = IDLE
    host.check(a=False)
    assert host.to_end() == []
    host.now += IDLE_SECONDS - 0.1
    assert host.to_end() == []
    host.now += 0.2
    assert host.to_end() == ["a"]
    host.schedule.request_worker("a")  # a notification while the worker ends
    host.end("a")
    assert host.wake() == ["a"]


def test_the_idle_time_starts_again_after_each_job() -> None:
    host = FakeHost(10, "a")
    host.check(a=True)
    host.wake()
    host.check(a=False)
    for activity in (IDLE, BUSY, IDLE):
        host.activity["a"] = activity
        assert host.to_end() == []
        host.now += IDLE_SECONDS - 0.1


def test_a_tenant_with_work_that_cannot_run_here_stays_awake() -> None:
    host = FakeHost(10, "a")
    host.check(a=True)
    host.wake()
    host.activity["a"] = IDLE
    host.to_end()
    host.now += 60
    assert host.to_end() == []


@pytest.mark.requirement("S4.2")
def test_no_tenant_starves_when_more_have_work_than_can_be_awake() -> None:
    """Ten tenants always have work, three may be awake: each wakes again and again."""
    names = [f"t{number}" for number in range(10)]
    host = FakeHost(3, *names)
    wakes: list[str] = []
    for _ in range(60):
        host.check(**dict.fromkeys(names, True))
        woken = host.wake()
        wakes += woken
        host.activity |= dict.fromkeys(woken, WAITING)
        assert sum(entry.awake_since is not None for entry in host.schedule.entries) <= 3
        host.now += 1.0
        host.end(*host.to_end())
    assert min(wakes.count(name) for name in names) >= len(wakes) // 10 - 2


def test_idle_workers_end_first_and_workers_with_running_jobs_stay() -> None:
    host = FakeHost(3, "busy", "waiting", "idle", "next")
    host.check(busy=True, waiting=True, idle=True)
    host.wake()
    host.activity = {"busy": BUSY, "waiting": WAITING, "idle": IDLE}
    host.check(next=True)
    assert host.wake() == []
    assert host.to_end() == ["idle"]
    assert host.to_end() == ["idle"]  # one is enough
    host.now += 0.1
    host.end("idle")
    assert host.wake() == ["next"]
    host.activity["next"] = BUSY
    host.check(idle=True)
    assert host.to_end() == []  # a worker that waits for a slot stays awake for its slice
    host.now += SLICE_SECONDS
    assert host.to_end() == ["waiting"]


def test_an_error_is_reported_once_and_checked_ever_more_rarely() -> None:
    host = FakeHost(10, "bad", "good")
    checks: list[float] = []
    for _ in range(3000):
        if "bad" in host.schedule.due_for_check("home"):
            assert host.schedule.record_error("bad", "no table") == (not checks)
            checks.append(host.now)
        host.now += 0.125
    gaps = [after - before for before, after in pairwise(checks)]
    assert gaps[:4] == [1.0, 2.0, 4.0, 8.0]
    assert gaps[-1] == LAST_RETRY_SECONDS
    assert host.schedule["bad"].tenant.state is TenantState.DEGRADED
    assert "good" in host.schedule.due_for_check("home")
    host.schedule.request_worker("bad")
    assert host.wake() == []
    assert host.schedule.record_check(TenantActivity("bad", True))
    assert not host.schedule.record_check(TenantActivity("bad", True))
    assert host.wake() == ["bad"]


def test_a_tenant_that_breaks_while_awake_is_put_to_sleep() -> None:
    host = FakeHost(10, "a")
    host.check(a=True)
    host.wake()
    host.schedule.record_error("a", "no table")
    assert host.to_end() == ["a"]
    host.end("a")
    assert host.wake() == []


def test_a_tenant_that_is_degraded_in_the_directory_is_checked_by_a_new_process() -> None:
    host = FakeHost(10)
    host.schedule.update([tenant("a", TenantState.DEGRADED)])
    assert host.schedule.due_for_check("home") == ["a"]
    assert host.schedule.record_error("a", "no table") is False  # known already


@pytest.mark.parametrize("state", [TenantState.PAUSED, TenantState.MOVING])
def test_a_paused_or_moving_tenant_sleeps_and_is_served_later(state: TenantState) -> None:
    host = FakeHost(10, "a", "b")
    host.check(a=True, b=False)
    host.wake()
    host.schedule.update([tenant("a", state), tenant("b", state)])
    assert host.to_end() == ["a"]
    assert host.schedule.due_for_check("home") == []
    host.end("a")
    assert host.schedule.entries == []
    host.schedule.update([tenant("a"), tenant("b")])
    host.check(a=True)
    assert host.wake() == ["a"]


def test_a_moved_tenant_gets_a_worker_in_its_new_shard() -> None:
    host = FakeHost(10, "a")
    host.check(a=True)
    host.wake()
    host.schedule.update([tenant("a", shard="second")])
    assert host.to_end() == ["a"]
    assert host.schedule.due_for_check("second") == ["a"]
    host.end("a")
    host.check(a=True)
    assert [each.shard for each in host.schedule.wake()] == ["second"]
