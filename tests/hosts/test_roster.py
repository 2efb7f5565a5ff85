"""Which tenants wake, which go, and which are left alone."""

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

BUSY = WorkerActivity(is_idle=False, runs_something=True)
AT_THE_GATE = WorkerActivity(is_idle=False, runs_something=False)
IDLE = WorkerActivity(is_idle=True, runs_something=False)


def tenant(name: str, state: TenantState = TenantState.ACTIVE, place: str = "home") -> Tenant:
    return Tenant(name=name, place=place, state=state, created_at=datetime(2030, 1, 1, tzinfo=UTC))


class Stage:
    """A roster, its time, and workers that do what the test says."""

    def __init__(self, limit: int, *names: str) -> None:
        self.now = 100.0
        self.roster = WakeSchedule(limit, lambda: self.now)
        self.doing: dict[str, WorkerActivity] = {}
        self.roster.update([tenant(name) for name in names])

    def look(self, **has_work: bool) -> None:
        for name, work in has_work.items():
            self.roster.looked(TenantActivity(name, work))

    def wake(self) -> list[str]:
        woken = [each.name for each in self.roster.wake()]
        self.doing |= dict.fromkeys(woken, BUSY)
        return woken

    def go(self) -> list[str]:
        return self.roster.go(lambda name: self.doing[name])

    def end(self, *names: str) -> None:
        for name in names:
            self.roster.gone(name)


@pytest.mark.requirement("S4.2")
def test_only_who_has_work_wakes() -> None:
    stage = Stage(10, "a", "b", "c")
    stage.look(a=False, b=True, c=False)
    assert stage.wake() == ["b"]
    assert stage.wake() == []
    stage.roster.want("c")
    assert stage.wake() == ["c"]


def test_an_idle_worker_goes_after_a_while_and_comes_again() -> None:
    stage = Stage(10, "a")
    stage.look(a=True)
    stage.wake()
    stage.now += 60
    assert stage.go() == []
    stage.doing["a"] = IDLE
    stage.look(a=False)
    assert stage.go() == []
    stage.now += IDLE_SECONDS - 0.1
    assert stage.go() == []
    stage.now += 0.2
    assert stage.go() == ["a"]
    stage.roster.want("a")  # heard while it goes
    stage.end("a")
    assert stage.wake() == ["a"]


def test_idleness_begins_anew_after_each_job() -> None:
    stage = Stage(10, "a")
    stage.look(a=True)
    stage.wake()
    stage.look(a=False)
    for doing in (IDLE, BUSY, IDLE):
        stage.doing["a"] = doing
        assert stage.go() == []
        stage.now += IDLE_SECONDS - 0.1


def test_what_has_work_that_cannot_be_run_here_stays_awake() -> None:
    stage = Stage(10, "a")
    stage.look(a=True)
    stage.wake()
    stage.doing["a"] = IDLE
    stage.go()
    stage.now += 60
    assert stage.go() == []


@pytest.mark.requirement("S4.2")
def test_nobody_starves_however_many_are_wanted() -> None:
    """Ten always have something to do, three may be awake: all get their turn, again and again."""
    names = [f"t{number}" for number in range(10)]
    stage = Stage(3, *names)
    turns: list[str] = []
    for _ in range(60):
        stage.look(**dict.fromkeys(names, True))
        woken = stage.wake()
        turns += woken
        stage.doing |= dict.fromkeys(woken, AT_THE_GATE)
        assert sum(line.awake_since is not None for line in stage.roster.lines) <= 3
        stage.now += 1.0
        stage.end(*stage.go())
    assert min(turns.count(name) for name in names) >= len(turns) // 10 - 2


def test_the_idle_make_room_first_and_who_runs_something_stays() -> None:
    stage = Stage(3, "busy", "gate", "idle", "next")
    stage.look(busy=True, gate=True, idle=True)
    stage.wake()
    stage.doing = {"busy": BUSY, "gate": AT_THE_GATE, "idle": IDLE}
    stage.look(next=True)
    assert stage.wake() == []
    assert stage.go() == ["idle"]
    assert stage.go() == ["idle"]  # one is enough
    stage.now += 0.1
    stage.end("idle")
    assert stage.wake() == ["next"]
    stage.doing["next"] = BUSY
    stage.look(idle=True)
    assert stage.go() == []  # who waits for a slot keeps its place for a moment
    stage.now += SLICE_SECONDS
    assert stage.go() == ["gate"]


def test_trouble_is_news_once_and_looked_at_ever_more_rarely() -> None:
    stage = Stage(10, "bad", "good")
    looks: list[float] = []
    for _ in range(3000):
        if "bad" in stage.roster.to_look_at("home"):
            assert stage.roster.trouble("bad", "no table") == (not looks)
            looks.append(stage.now)
        stage.now += 0.125
    gaps = [after - before for before, after in pairwise(looks)]
    assert gaps[:4] == [1.0, 2.0, 4.0, 8.0]
    assert gaps[-1] == LAST_RETRY_SECONDS
    assert stage.roster["bad"].tenant.state is TenantState.DEGRADED
    assert "good" in stage.roster.to_look_at("home")
    stage.roster.want("bad")
    assert stage.wake() == []
    assert stage.roster.looked(TenantActivity("bad", True))
    assert not stage.roster.looked(TenantActivity("bad", True))
    assert stage.wake() == ["bad"]


def test_one_that_breaks_while_awake_is_sent_away() -> None:
    stage = Stage(10, "a")
    stage.look(a=True)
    stage.wake()
    stage.roster.trouble("a", "no table")
    assert stage.go() == ["a"]
    stage.end("a")
    assert stage.wake() == []


def test_who_is_degraded_in_the_directory_is_looked_at_by_newcomers() -> None:
    stage = Stage(10)
    stage.roster.update([tenant("a", TenantState.DEGRADED)])
    assert stage.roster.to_look_at("home") == ["a"]
    assert stage.roster.trouble("a", "no table") is False  # known already


@pytest.mark.parametrize("state", [TenantState.PAUSED, TenantState.MOVING])
def test_who_is_paused_or_moving_goes_and_comes_back_later(state: TenantState) -> None:
    stage = Stage(10, "a", "b")
    stage.look(a=True, b=False)
    stage.wake()
    stage.roster.update([tenant("a", state), tenant("b", state)])
    assert stage.go() == ["a"]
    assert stage.roster.to_look_at("home") == []
    stage.end("a")
    assert stage.roster.lines == []
    stage.roster.update([tenant("a"), tenant("b")])
    stage.look(a=True)
    assert stage.wake() == ["a"]


def test_who_has_moved_gets_a_worker_at_its_new_place() -> None:
    stage = Stage(10, "a")
    stage.look(a=True)
    stage.wake()
    stage.roster.update([tenant("a", place="second")])
    assert stage.go() == ["a"]
    assert stage.roster.to_look_at("second") == ["a"]
    stage.end("a")
    stage.look(a=True)
    assert [each.place for each in stage.roster.wake()] == ["second"]
