"""`freehold up --tenants`: hosts for all tenants, and workers of their own for some."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from freehold.app import Freehold
from freehold.cli.fleets import parse_tenant_counts, plan_fleets
from freehold.errors import BadInput, BadSettings
from freehold.model.scaling import ScaleRule, WorkerCount
from freehold.settings import load
from tests.manager.load_app import app, naps, waits
from tests.manager.service import Service
from tests.worker.fleet import eventually

RULE = ScaleRule(default_count=1, max_count=3, concurrency=2)


def enqueue(service: Service, tenant: str, task: Any, *args: Any) -> int:
    job_id: int = service.app.tenant(tenant)._submit(task.prepare(*args)).id
    return job_id


def has_succeeded(service: Service, tenant: str, job_id: int) -> bool:
    return str(service.app.tenant(tenant)._client.store.read([job_id])[job_id].state) == "succeeded"


@pytest.mark.requirement("S4.2", "S4.11")
@pytest.mark.either_store
def test_hosts_serve_all_tenants_and_their_number_follows_the_backlog(service: Service) -> None:
    gate = service.folder / "gate"
    for name in ("acme", "beta"):
        service.app.tenants.create(name)
    up = service.up("--tenants", "all", "--default-count", "1", "--max-count", "2", "--no-http")
    assert service.until_registered(1)[0].queues == ()
    # More than one host has slots for.
    jobs = [(name, enqueue(service, name, waits, str(gate))) for name in ("acme", "beta") * 4]
    service.until_workers(2)
    service.until_registered(2)
    gate.touch()
    eventually(lambda: all(has_succeeded(service, *job) for job in jobs))
    service.until_workers(1)  # the idle one ends after the cooldown
    up.send(signal.SIGTERM)
    assert up.ended() == 0
    assert service.registered() == []


@pytest.mark.requirement("S4.2", "S2.11")
@pytest.mark.either_store
def test_the_jobs_of_a_killed_host_do_not_wait_for_the_end_of_their_leases(
    service: Service,
) -> None:
    gate, names = service.folder / "gate", ("acme", "beta")
    for name in names:
        service.app.tenants.create(name)
    up = service.up(
        *("--tenants", "all", "--default-count", "1", "--max-count", "1", "--no-http"),
        FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS="3600",
    )
    jobs = [(name, enqueue(service, name, waits, str(gate))) for name in names]
    eventually(lambda: len(service.record.lines()) == len(jobs))
    os.kill(service.record.lines()[0].pid, signal.SIGKILL)
    eventually(lambda: len(service.record.lines()) == 2 * len(jobs))
    gate.touch()
    eventually(lambda: all(has_succeeded(service, *job) for job in jobs))
    up.send(signal.SIGTERM)
    assert up.ended() == 0


@pytest.mark.requirement("S4.2")
def test_a_tenant_has_as_many_workers_of_its_own_as_are_configured(
    sqlite_service: Service,
) -> None:
    service = sqlite_service
    for name in ("acme", "beta"):
        service.app.tenants.create(name)
    counts = ("--default-count", "1", "--tenant-count", "acme=2", "--no-http")
    up = service.up("--tenants", "all", *counts)
    acme = service.app.tenant("acme")
    eventually(lambda: len(acme.operator.workers()) == 2)
    service.until_workers(3)
    owners = {worker.owner for worker in acme.operator.workers()}
    for name in ("acme", "beta"):
        job_id = enqueue(service, name, naps, 0.0)
        eventually(lambda name=name, job_id=job_id: has_succeeded(service, name, job_id))  # type: ignore[misc]
    assert {worker.owner for worker in acme.operator.workers()} == owners, "no host serves it"
    up.send(signal.SIGTERM)
    assert up.ended() == 0
    assert service.worker_pids() == []


def test_an_unknown_tenant_is_refused_before_anything_is_started(sqlite_service: Service) -> None:
    sqlite_service.app.tenants.create("acme")
    assert sqlite_service.up("--tenants", "acme,acne", "--no-http").ended() == 1
    assert "there is no tenant 'acne'; did you mean acme?" in sqlite_service.log_text()
    assert "started" not in sqlite_service.log_text()


def test_the_workers_of_a_tenant_are_known_by_its_store_in_whichever_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same relative name, one project's tenant would be taken for that of another."""
    monkeypatch.setenv("FREEHOLD_SHARD_EAST", "east/jobs.db")
    found = []
    for project in ("shop", "bank"):
        (tmp_path / project / "east").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / project)
        project_app = Freehold("jobs.db")
        project_app.tenants.create("acme")
        found.append(project_app.tenant("acme")._store_identity)
        project_app.tenants.move("acme", "east")
        assert project_app.tenant("acme")._store_identity == found[-1]
        assert project_app._store_identity != found[-1]
        project_app.close()
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("postgresql:///jobs?host=/a", "postgresql:///jobs?host=/b", False),
        ("postgresql://db/jobs?port=5433", "postgresql://db/jobs", False),
        ("postgresql://ann:one@db/jobs", "postgresql://bob:two@db:5432/jobs?sslmode=require", True),
        ("postgresql://db/jobs", "host=db dbname=jobs", True),
        ("postgresql+asyncpg://db/jobs", "postgres://db/jobs?application_name=x", True),
        ("postgresql:///jobs", "postgresql://from-the-environment/jobs", True),
    ],
)
def test_two_stores_never_share_the_process_slots(
    one: str, other: str, is_same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one store has one set of them, however its URL is written."""
    monkeypatch.setenv("PGHOST", "from-the-environment")
    found = {Freehold(url)._store_identity for url in (one, other)}
    assert (len(found) == 1) is is_same
    assert "two" not in str(found)


def test_the_fleets_of_some_tenants(tmp_path: Path) -> None:
    (tmp_path / "freehold.toml").write_text("[tenants.acme]\nmax_count = 4\n")
    configured = load(folder=tmp_path, environment={}).tenants
    assert configured == {"acme": WorkerCount(1, 4)}
    given = parse_tenant_counts(["beta=2"])
    hosts, acme, beta = plan_fleets(app, RULE, "all", configured, given)
    assert hosts.arguments == (
        *("--tenants", "all", "--without-tenant", "acme"),
        *("--without-tenant", "beta"),
    )
    assert (hosts.rule, hosts.app) == (RULE, app)
    assert (acme.rule.default_count, acme.rule.max_count, acme.arguments) == (1, 4, ())
    assert (beta.app._tenant_name, beta.rule.max_count) == ("beta", 2)
    (only,) = plan_fleets(app, RULE, ["beta"], configured, given)
    assert only.app._tenant_name == "beta"
    hosts, _ = plan_fleets(app, RULE, ["beta", "other"], configured, given)
    assert hosts.arguments == ("--tenants", "other")


@pytest.mark.parametrize(
    "count", ["acme", "acme=", "acme=x", "acme=2-1", "acme=0", "acme=1-", "A=1"]
)
def test_bad_counts_of_a_tenant_are_refused(count: str) -> None:
    with pytest.raises(BadInput):
        parse_tenant_counts([count])


@pytest.mark.parametrize("text", ["", "default_count = 0", "max_count = 1.5", "count = 2"])
def test_bad_counts_in_the_settings_are_refused_with_their_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "freehold.toml").write_text(f"[tenants.acme]\n{text}\n")
    with pytest.raises(BadSettings, match=r"freehold\.toml:1"):
        load(folder=tmp_path, environment={})


def test_counts_without_their_tenants_are_refused() -> None:
    count = {"acme": WorkerCount(1, 1)}
    with pytest.raises(BadInput, match="--tenants"):
        plan_fleets(app, RULE, None, {}, count)
    with pytest.raises(BadInput, match="acme, which --tenants does not name"):
        plan_fleets(app, RULE, ["beta"], {}, count)
    with pytest.raises(BadInput, match="not both"):
        plan_fleets(app.tenant("acme"), RULE, "all", {}, {})
