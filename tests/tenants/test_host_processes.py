"""Hosts as processes: shares over several hosts, drain, kill, and a broken tenant."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg
import pytest

from freehold.model.job import NewJob
from freehold.model.tenant import TenantState
from tests.tenants import host_app
from tests.tenants.host_processes import HostProcesses


@pytest.mark.requirement("S4.2")
@pytest.mark.either_store
def test_two_processes_serve_all_tenants_and_leave_nothing_leased(hosts: HostProcesses) -> None:
    """Their shares by weight are a matter of slots, on virtual time: a slot that waits for a slow
    store goes to the other tenants, so on a busy machine they depend on its speed."""
    names = ("five", "three", "one")
    for name, weight in zip(names, (5.0, 3.0, 1.0), strict=True):
        hosts.add(name, weight)
    processes = [hosts.start("--concurrency", "6") for _ in range(2)]
    everywhere = {(process.pid, name) for process in processes for name in names}

    def are_served_everywhere() -> bool:
        for name in names:
            if hosts.live(name) < 20:
                hosts.enqueue(name, 40, seconds=0.05)
        return {(line.pid, line.tenant) for line in hosts.lines("start")} == everywhere

    hosts.until(are_served_everywhere)
    assert {process.drain() for process in processes} == {0}
    starts = Counter((line.tenant, line.job) for line in hosts.lines("start"))
    assert set(starts.values()) == {1}
    assert all(hosts.leased(name) == 0 for name in names)


@pytest.mark.requirement("S4.2", "S3.6")
@pytest.mark.either_store
def test_an_idle_tenants_share_goes_to_the_others(hosts: HostProcesses) -> None:
    hosts.add("idle", 100.0)
    hosts.add("busy", 1.0)
    hosts.enqueue("busy", 40, seconds=0.1)
    hosts.start("--concurrency", "4")
    hosts.until(lambda: hosts.ended("busy") == 40)
    lines = sorted(
        [(line.at, 1 if line.what == "start" else -1) for line in hosts.lines("start")]
        + [(line.at, -1) for line in hosts.lines("end")]
    )
    running, most = 0, 0
    for _, change in lines:
        running += change
        most = max(most, running)
    assert most == 4


@pytest.mark.requirement("S4.11", "S4.2")
@pytest.mark.either_store
def test_drain_leaves_nothing_leased_and_loses_nothing(hosts: HostProcesses) -> None:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        hosts.add(name)
        hosts.enqueue(name, 60, seconds=0.1)
    host = hosts.start("--concurrency", "6")
    hosts.until(lambda: len({line.tenant for line in hosts.lines("start")}) == 6)
    assert host.drain() == 0
    assert [hosts.leased(name) for name in names] == [0] * 6
    starts = Counter((line.tenant, line.job) for line in hosts.lines("start"))
    ends = Counter((line.tenant, line.job) for line in hosts.lines("end"))
    assert starts == ends  # within the grace period
    assert 0 < sum(ends.values()) < 360
    assert hosts.start("--until-idle", "--concurrency", "20").ended() == 0
    assert [hosts.live(name) for name in names] == [0] * 6
    again = Counter((line.tenant, line.job) for line in hosts.lines("start"))
    assert len(again) == 360
    assert set(again.values()) == {1}


@pytest.mark.requirement("S4.11")
@pytest.mark.either_store
def test_a_second_signal_stops_the_jobs_of_all_tenants(hosts: HostProcesses) -> None:
    for name in ("a", "b"):
        hosts.add(name)
        hosts.enqueue(name, 2, seconds=60.0)
    host = hosts.start()
    hosts.until(lambda: len(hosts.lines("start")) == 4)
    host.send(signal.SIGTERM)
    hosts.until(lambda: "host drains" in host.log)
    host.send(signal.SIGTERM)
    assert host.ended() == 0
    assert hosts.leased("a") == hosts.leased("b") == 0


@pytest.mark.requirement("S4.2", "S3.3")
def test_a_killed_hosts_jobs_are_recovered_in_every_tenant(hosts: HostProcesses) -> None:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        hosts.add(name)
        hosts.enqueue(name, 2, seconds=1.5)
    victim = hosts.start("--concurrency", "10", lease=1.0)
    hosts.until(lambda: len(hosts.lines("start")) == 10)
    victim.send(signal.SIGKILL)
    victim.ended()
    assert not hosts.lines("end")
    hosts.start("--concurrency", "10", lease=1.0)
    hosts.until(lambda: all(hosts.ended(name) == 2 for name in names))
    hosts.until(lambda: all(hosts.live(name) == 0 for name in names))
    starts = Counter((line.tenant, line.job) for line in hosts.lines("start"))
    assert set(starts.values()) == {2}


@pytest.mark.requirement("S4.2")
def test_a_tenant_with_a_dropped_table_is_degraded_and_the_others_are_served(
    hosts: HostProcesses,
) -> None:
    for name in ("bad", "good"):
        hosts.add(name)
        hosts.enqueue(name, 2)
    host = hosts.start("--poll-interval-ms", "50", lease=1.0)
    hosts.until(lambda: hosts.ended("bad") == hosts.ended("good") == 2)
    _rename(hosts, "job", "gone")
    hosts.until(lambda: hosts.state("bad") is TenantState.DEGRADED)
    hosts.enqueue("good", 5)
    hosts.until(lambda: hosts.ended("good") == 7)
    assert host.log.count("tenant bad is degraded") == 1
    _rename(hosts, "gone", "job")
    hosts.until(lambda: hosts.state("bad") is TenantState.ACTIVE)
    hosts.enqueue("bad", 3)
    hosts.until(lambda: hosts.ended("bad") == 5)
    assert host.is_alive


def _rename(hosts: HostProcesses, before: str, after: str) -> None:
    """Rename a table of the tenant `bad`, outside the store."""
    if hosts.url.startswith("postgres"):
        with psycopg.connect(hosts.url, autocommit=True) as postgres:
            postgres.execute(f"alter table freehold_t_bad.{before} rename to {after}".encode())
        return
    with closing(sqlite3.connect(hosts.folder / "jobs.bad.db")) as sqlite, sqlite:
        sqlite.execute("pragma legacy_alter_table = on")
        sqlite.execute(f"alter table {before} rename to {after}")


@pytest.mark.either_store
def test_a_host_serves_the_named_tenants_only(hosts: HostProcesses) -> None:
    for name in ("a", "b", "c"):
        hosts.add(name)
        hosts.enqueue(name, 3)
    assert hosts.start("--until-idle", tenants="a,c").ended() == 0
    assert [hosts.ended(name) for name in ("a", "b", "c")] == [3, 0, 3]


@pytest.mark.either_store
def test_plain_functions_of_all_tenants_share_threads(hosts: HostProcesses) -> None:
    for name in ("a", "b"):
        hosts.add(name)
        hosts.app.tenant(name).enqueue_many([host_app.threaded.prepare(name) for _ in range(30)])
    assert hosts.start("--until-idle").ended() == 0
    assert hosts.ended("a") == hosts.ended("b") == 30


def test_an_unknown_tenant_is_refused(postgres_hosts: HostProcesses) -> None:
    postgres_hosts.add("acme")
    host = postgres_hosts.start(tenants="acne")
    assert host.ended() != 0
    assert "did you mean acme" in host.log


def test_a_tenant_that_is_created_later_is_served_too(postgres_hosts: HostProcesses) -> None:
    postgres_hosts.add("a")
    postgres_hosts.start().until_ready()
    postgres_hosts.add("b")
    postgres_hosts.enqueue("b", 2)
    postgres_hosts.until(lambda: postgres_hosts.ended("b") == 2)


@pytest.mark.requirement("S4.2")
def test_locked_tables_of_one_tenant_do_not_delay_the_others(postgres_hosts: HostProcesses) -> None:
    hosts = postgres_hosts
    for name in ("hung", "good"):
        hosts.add(name)
        hosts.enqueue(name, 2)
    hosts.start("--concurrency", "4")
    hosts.until(lambda: hosts.ended("hung") == hosts.ended("good") == 2)
    with psycopg.connect(hosts.url) as postgres:
        postgres.execute("lock table freehold_t_hung.job in access exclusive mode")
        hosts.enqueue("good", 50, seconds=0.01)
        hosts.until(lambda: hosts.ended("good") == 52)
    hosts.enqueue("hung", 3)
    hosts.until(lambda: hosts.ended("hung") == 5)


@pytest.mark.parametrize(
    "task",
    [host_app.record_tenant, host_app.record_tenant_in_child],
    ids=["coroutine", "process"],
)
def test_a_handler_knows_the_tenant_of_its_job(sqlite_hosts: HostProcesses, task: Any) -> None:
    for name in ("a", "b"):
        sqlite_hosts.add(name)
        sqlite_hosts.app.tenant(name).enqueue_many([task.prepare()])
    assert sqlite_hosts.start("--until-idle").ended() == 0
    assert sorted(line.tenant for line in sqlite_hosts.lines("start")) == ["a", "b"]


@pytest.mark.requirement("S4.2")
@pytest.mark.either_store
def test_a_host_without_a_manager_is_among_the_workers(hosts: HostProcesses) -> None:
    hosts.add("acme")
    process = hosts.start()
    hosts.until(lambda: [worker.queues for worker in hosts.app.operator.workers()] == [()])
    assert process.drain() == 0
    assert hosts.app.operator.workers() == []


@pytest.mark.requirement("S4.2")
@pytest.mark.either_store
def test_a_line_about_a_job_of_a_host_names_the_tenant(hosts: HostProcesses) -> None:
    """An id is that of a job in each tenant."""
    hosts.add("acme")
    hosts.add("beta")
    hosts.app.tenant("acme")._client.enqueue([NewJob(task="unknown")])
    hosts.app.tenant("beta").enqueue_many([host_app.logs.prepare()])
    process = hosts.start("--log-format", "json")
    log = hosts.folder / "host-1.log"
    hosts.until(lambda: "does not know the task" in log.read_text() and "hello" in log.read_text())
    assert process.drain() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (unknown,) = [line for line in lines if "does not know the task" in line["message"]]
    (handler,) = [line for line in lines if line["message"] == "hello"]
    assert (unknown["tenant"], handler["tenant"], handler["job"]) == ("acme", "beta", 1)
