"""Hosts as processes: shares over the fleet, drain, kill, and a tenant that breaks."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg
import pytest

from freehold.model.tenant import TenantState
from tests.hosts import crew_app
from tests.hosts.crew import Crew

WEIGHTS = {"five": 5.0, "three": 3.0, "one": 1.0}


@pytest.mark.requirement("S4.2", "S3.6")
def test_saturated_tenants_share_two_processes_by_weight(crew: Crew) -> None:
    """Jobs take a while, so that slots are what is scarce, and not a tenant's own store."""
    for name, weight, count in (("five", 5.0, 2000), ("three", 3.0, 1400), ("one", 1.0, 700)):
        crew.add(name, weight)
        crew.enqueue(name, count, seconds=0.02)
    hosts = [crew.start() for _ in range(2)]
    crew.until(lambda: len(crew.lines("start")) >= 2700)
    assert {host.drain() for host in hosts} == {0}
    starts = sorted(crew.lines("start"), key=lambda line: line.at)[:2700]
    counts = Counter(line.tenant for line in starts)
    for name, weight in WEIGHTS.items():
        assert counts[name] == pytest.approx(2700 * weight / 9, rel=0.1), counts
    assert len({line.pid for line in starts}) == 2
    assert all(crew.leased(name) == 0 for name in WEIGHTS)


@pytest.mark.requirement("S4.2", "S3.6")
def test_an_idle_tenants_share_goes_to_the_others(crew: Crew) -> None:
    crew.add("idle", 100.0)
    crew.add("busy", 1.0)
    crew.enqueue("busy", 40, seconds=0.1)
    crew.start("--concurrency", "4")
    crew.until(lambda: crew.ended("busy") == 40)
    lines = sorted(
        [(line.at, 1 if line.what == "start" else -1) for line in crew.lines("start")]
        + [(line.at, -1) for line in crew.lines("end")]
    )
    running, most = 0, 0
    for _, change in lines:
        running += change
        most = max(most, running)
    assert most == 4


@pytest.mark.requirement("S4.11", "S4.2")
def test_drain_leaves_nothing_leased_and_loses_nothing(crew: Crew) -> None:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        crew.add(name)
        crew.enqueue(name, 60, seconds=0.1)
    host = crew.start("--concurrency", "6")
    crew.until(lambda: len({line.tenant for line in crew.lines("start")}) == 6)
    assert host.drain() == 0
    assert [crew.leased(name) for name in names] == [0] * 6
    starts = Counter((line.tenant, line.job) for line in crew.lines("start"))
    ends = Counter((line.tenant, line.job) for line in crew.lines("end"))
    assert starts == ends  # within the grace period
    assert 0 < sum(ends.values()) < 360
    assert crew.start("--until-idle", "--concurrency", "20").ended() == 0
    assert [crew.live(name) for name in names] == [0] * 6
    again = Counter((line.tenant, line.job) for line in crew.lines("start"))
    assert len(again) == 360
    assert set(again.values()) == {1}


@pytest.mark.requirement("S4.11")
def test_a_second_signal_hurries_all_tenants(crew: Crew) -> None:
    for name in ("a", "b"):
        crew.add(name)
        crew.enqueue(name, 2, seconds=60.0)
    host = crew.start()
    crew.until(lambda: len(crew.lines("start")) == 4)
    host.send(signal.SIGTERM)
    crew.until(lambda: "host drains" in host.log)
    host.send(signal.SIGTERM)
    assert host.ended() == 0
    assert crew.leased("a") == crew.leased("b") == 0


@pytest.mark.requirement("S4.2", "S3.3")
def test_a_killed_hosts_jobs_are_recovered_in_every_tenant(crew: Crew) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        crew.add(name)
        crew.enqueue(name, 2, seconds=1.5)
    victim = crew.start("--concurrency", "10", lease=1.0)
    crew.until(lambda: len(crew.lines("start")) == 10)
    victim.send(signal.SIGKILL)
    victim.ended()
    assert not crew.lines("end")
    crew.start("--concurrency", "10", lease=1.0)
    crew.until(lambda: all(crew.ended(name) == 2 for name in names))
    crew.until(lambda: all(crew.live(name) == 0 for name in names))
    starts = Counter((line.tenant, line.job) for line in crew.lines("start"))
    assert set(starts.values()) == {2}


@pytest.mark.requirement("S4.2")
def test_a_tenant_with_a_dropped_table_is_degraded_and_the_others_go_on(crew: Crew) -> None:
    for name in ("bad", "good"):
        crew.add(name)
        crew.enqueue(name, 2)
    host = crew.start("--poll-ms", "50", lease=1.0)
    crew.until(lambda: crew.ended("bad") == crew.ended("good") == 2)
    _rename(crew, "job", "gone")
    crew.until(lambda: crew.state("bad") is TenantState.DEGRADED)
    crew.enqueue("good", 5)
    crew.until(lambda: crew.ended("good") == 7)
    assert host.log.count("tenant bad is degraded") == 1
    _rename(crew, "gone", "job")
    crew.until(lambda: crew.state("bad") is TenantState.ACTIVE)
    crew.enqueue("bad", 3)
    crew.until(lambda: crew.ended("bad") == 5)
    assert host.is_alive


def _rename(crew: Crew, before: str, after: str) -> None:
    """A table of the tenant `bad`, behind the store's back."""
    if crew.url.startswith("postgres"):
        with psycopg.connect(crew.url, autocommit=True) as postgres:
            postgres.execute(f"alter table freehold_t_bad.{before} rename to {after}".encode())
        return
    with closing(sqlite3.connect(crew.folder / "jobs.bad.db")) as sqlite, sqlite:
        sqlite.execute("pragma legacy_alter_table = on")
        sqlite.execute(f"alter table {before} rename to {after}")


def test_a_process_serves_only_whom_it_was_told_to(crew: Crew) -> None:
    for name in ("a", "b", "c"):
        crew.add(name)
        crew.enqueue(name, 3)
    assert crew.start("--until-idle", tenants="a,c").ended() == 0
    assert [crew.ended(name) for name in ("a", "b", "c")] == [3, 0, 3]


def test_plain_functions_of_all_tenants_share_threads(crew: Crew) -> None:
    for name in ("a", "b"):
        crew.add(name)
        crew.app.tenant(name).enqueue_many([crew_app.threaded.prepare(name) for _ in range(30)])
    assert crew.start("--until-idle").ended() == 0
    assert crew.ended("a") == crew.ended("b") == 30


def test_a_tenant_that_nobody_knows_is_refused(postgres_crew: Crew) -> None:
    postgres_crew.add("acme")
    host = postgres_crew.start(tenants="acne")
    assert host.ended() != 0
    assert "did you mean acme" in host.log


def test_a_tenant_that_is_made_later_is_served_too(postgres_crew: Crew) -> None:
    postgres_crew.add("a")
    postgres_crew.start().until_ready()
    postgres_crew.add("b")
    postgres_crew.enqueue("b", 2)
    postgres_crew.until(lambda: postgres_crew.ended("b") == 2)


@pytest.mark.requirement("S4.2")
def test_a_tenant_whose_tables_are_locked_holds_up_nobody_else(postgres_crew: Crew) -> None:
    crew = postgres_crew
    for name in ("hung", "good"):
        crew.add(name)
        crew.enqueue(name, 2)
    crew.start("--concurrency", "4")
    crew.until(lambda: crew.ended("hung") == crew.ended("good") == 2)
    with psycopg.connect(crew.url) as postgres:
        postgres.execute("lock table freehold_t_hung.job in access exclusive mode")
        crew.enqueue("good", 50, seconds=0.01)
        crew.until(lambda: crew.ended("good") == 52)
    crew.enqueue("hung", 3)
    crew.until(lambda: crew.ended("hung") == 5)


@pytest.mark.parametrize("task", [crew_app.whose, crew_app.whose_apart], ids=["here", "apart"])
def test_a_handler_knows_whose_job_it_runs(sqlite_crew: Crew, task: Any) -> None:
    for name in ("a", "b"):
        sqlite_crew.add(name)
        sqlite_crew.app.tenant(name).enqueue_many([task.prepare()])
    assert sqlite_crew.start("--until-idle").ended() == 0
    assert sorted(line.tenant for line in sqlite_crew.lines("start")) == ["a", "b"]
