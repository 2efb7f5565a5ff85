"""One check of all tenants finds those with work and those that are broken."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import psycopg
import pytest

from freehold.client import Client
from freehold.errors import Refused
from freehold.model.audit import Author
from freehold.model.bulk import BulkVerb
from freehold.model.flow import FlowKind, NewFlow
from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.schedule import ScheduleDefinition
from freehold.model.state import State
from freehold.model.tenant import HOME_SHARD
from freehold.model.timing import Every
from freehold.store.shard import Shard, TenantActivity
from freehold.store.sqlfiles import load_migrations, script
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.sqlite.file_poll import FilePoll
from freehold.store.sqlite.shard import SqliteShard
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, JobFilter
from tests.concurrency import wait_until
from tests.tenants.tenant_stores import TenantStores, add, claim_request


def check(shard: Shard, *tenants: str) -> list[TenantActivity]:
    async def checking() -> list[TenantActivity]:
        try:
            return await shard.tenants_with_work(tenants)
        finally:
            await shard.aclose()

    return asyncio.run(checking())


def has_work(stores: TenantStores, tenant: str) -> bool:
    (activity,) = check(stores.shards[HOME_SHARD], tenant)
    assert activity.error is None
    return activity.has_work


@pytest.fixture
def acme(stores: TenantStores) -> TenantStores:
    stores.tenants.create("acme")
    assert not has_work(stores, "acme")
    return stores


@pytest.mark.requirement("N16")
def test_a_bulk_operation_is_work_although_all_queues_are_paused(acme: TenantStores) -> None:
    """Or the failed jobs of an idle tenant would never be retried."""
    store = acme.store_of("acme")
    add(store)
    (attempt,) = store.claim(claim_request())
    store.finish(attempt.owner, [AttemptEnd(attempt, Outcome(kind=OutcomeKind.FAIL))])
    store.pause_queue("*", "ann", None, None)
    assert not has_work(acme, "acme")
    failed = JobFilter(states=frozenset({State.FAILED}))
    store.start_bulk(BulkVerb.RETRY, failed, None, Author("ann", "cli"))
    assert has_work(acme, "acme")
    assert store.carry_out_bulk_step()
    assert not has_work(acme, "acme")


def test_the_end_of_a_member_is_work_until_it_is_counted(acme: TenantStores) -> None:
    """An operator cancels it, while no process of the tenant has a worker."""
    store = acme.store_of("acme")
    batch = NewFlow(kind=FlowKind.BATCH, name="b", sealed=True, callbacks={})
    store.create_batch(batch, [NewJob(task="t", delay_seconds=60.0)], within=False)
    store.advance_flows()
    assert not has_work(acme, "acme")
    (job,) = store.read(range(1, 100)).values()
    store.operate(OperatorVerb.CANCEL, [job.id], "ann", None)
    assert has_work(acme, "acme")
    store.advance_flows()
    assert not has_work(acme, "acme")


@pytest.mark.requirement("S4.2")
def test_a_ready_job_is_work_until_it_is_claimed(acme: TenantStores) -> None:
    add(acme.store_of("acme"))
    assert has_work(acme, "acme")
    (attempt,) = acme.store_of("acme").claim(claim_request())
    assert not has_work(acme, "acme")
    acme.store_of("acme").finish("w", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
    assert not has_work(acme, "acme")


def test_a_scheduled_job_is_work_when_it_is_due(acme: TenantStores) -> None:
    add(acme.store_of("acme"), delay_seconds=0.4)
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "work")


def test_an_expired_lease_is_work_also_in_a_paused_tenant(acme: TenantStores) -> None:
    add(acme.store_of("acme"))
    acme.store_of("acme").claim(claim_request(lease_seconds=0.5))
    acme.tenants.pause("acme", "ann")
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "work")


def test_a_sleeping_tenant_does_not_wait_for_a_clock_that_was_set_back(acme: TenantStores) -> None:
    store = acme.store_of("acme")
    add(store)
    (attempt,) = store.claim(claim_request(lease_seconds=60.0))
    assert not has_work(acme, "acme")
    lease_an_hour_later(acme, "acme")
    assert has_work(acme, "acme")
    assert store.restart_leases(10) == 1
    assert not has_work(acme, "acme")
    assert store.read([attempt.job_id])[attempt.job_id].lease is not None


def test_a_file_remembered_as_idle_is_read_again_once_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    database = SqliteDatabase(tmp_path / "jobs.db")
    store, started = Store(database.session()), time.time_ns() // 1000
    now = started + 5_000_000  # longer after the last change than timestamps are precise
    poll = FilePoll(lambda: now)
    add(store)
    store.claim(claim_request(lease_seconds=60.0))
    assert poll.check(tmp_path / "jobs.db") == (False, None)
    now = started - 3_600_000_000
    assert poll.check(tmp_path / "jobs.db") == (True, None)
    database.close()


@pytest.mark.parametrize("version", [1, 8])
def test_a_file_of_an_older_release_is_opened_and_migrated_and_not_degraded(
    tmp_path: Path, version: int
) -> None:
    """The check reads tables that the file does not have yet."""
    shard = SqliteShard(tmp_path / "jobs.db")
    path = shard.path_of("acme")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        for number, _, sql in load_migrations("freehold.store.sqlite")[:version]:
            for statement in script(sql):
                file.execute(statement)
            file.execute(f"pragma user_version = {number}")
    assert check(shard, "acme") == [TenantActivity("acme", True, None)]
    assert shard.open("acme").pending() == []
    assert check(shard, "acme") == [TenantActivity("acme", False, None)]
    shard.close()


def lease_an_hour_later(stores: TenantStores, tenant: str) -> None:
    """As if the clock had been set back since."""
    columns = ("leased_at", "lease_expires_at")
    if stores.kind == "postgres":
        later = ", ".join(f"{name} = {name} + interval '1 h'" for name in columns)
        with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
            connection.execute(f"update freehold_t_{tenant}.job set {later}".encode())
    else:
        later = ", ".join(f"{name} = {name} + 3600000000" for name in columns)
        path = Path(stores.urls[HOME_SHARD]).with_name(f"jobs.{tenant}.db")
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.execute(f"update job set {later}")


def test_paused_jobs_are_not_work_until_the_pause_ends(acme: TenantStores) -> None:
    store = acme.store_of("acme")
    add(store)
    store.pause_queue("default", "ann", None, None)
    assert not has_work(acme, "acme")
    store.pause_queue("default", "ann", None, datetime.now(UTC) + timedelta(seconds=0.4))
    assert not has_work(acme, "acme")
    wait_until(lambda: has_work(acme, "acme"), "work")


@pytest.mark.requirement("S4.2")
def test_a_broken_tenant_is_reported_and_does_not_affect_the_others(stores: TenantStores) -> None:
    names = ("acme", "beta", "gone", "broken", "zeta")
    for name in ("acme", "beta", "broken", "zeta"):
        stores.tenants.create(name)
    drop_job_table(stores, "broken")
    add(stores.store_of("zeta"))
    found = {each.tenant: each for each in check(stores.shards[HOME_SHARD], *names)}
    assert [name for name in names if found[name].error] == ["gone", "broken"]
    assert [name for name in names if found[name].has_work] == ["zeta"]
    assert "job" in str(found["broken"].error)


def drop_job_table(stores: TenantStores, tenant: str) -> None:
    """Outside the store."""
    if stores.kind == "postgres":
        with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
            connection.execute(f"drop table freehold_t_{tenant}.job cascade".encode())
    else:
        stores.shards[HOME_SHARD].retire(tenant)


def test_notifications_of_a_shard_name_their_tenant(stores: TenantStores) -> None:
    for name in ("acme", "beta"):
        stores.tenants.create(name)
    received: list[tuple[str, str | None]] = []

    async def scenario() -> None:
        notified = asyncio.Event()

        def on_notification(tenant: str, topic: str | None) -> None:
            received.append((tenant, topic))
            notified.set()

        listening = asyncio.create_task(
            stores.shards[HOME_SHARD].listen(lambda: ["acme"], on_notification)
        )
        async with asyncio.timeout(10):
            await notified.wait()
            notified.clear()
            for name in ("beta", "acme"):
                Client(stores.tenants.open(name)).enqueue([NewJob(task="t")])
            await notified.wait()
        listening.cancel()
        await asyncio.wait([listening])

    asyncio.run(scenario())
    assert received[0] == ("acme", "")
    assert {tenant for tenant, _ in received} == {"acme"}
    if stores.kind == "postgres":
        assert received[1] == ("acme", "+default")


def test_files_of_tenants_are_private(stores: TenantStores) -> None:
    if stores.kind == "postgres":
        return
    stores.tenants.create("acme")
    add(stores.store_of("acme"))
    files: Sequence[Path] = sorted(Path(stores.urls[HOME_SHARD]).parent.glob("jobs.acme.db*"))
    assert files
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}


def put_schedule(stores: TenantStores) -> None:
    job = NewJob(task="t")
    definition = ScheduleDefinition(name="books", timing=Every(hours=1), job=job)
    stores.store_of("acme").put_schedule(definition, "ann")


@pytest.mark.requirement("N3")
def test_a_due_schedule_is_work_even_where_all_queues_are_paused(acme: TenantStores) -> None:
    store = acme.store_of("acme")
    put_schedule(acme)
    store.pause_queue("*", "ann", None, None)
    assert not has_work(acme, "acme")
    store.change_schedule(
        "books", lambda schedule, now: msgspec.structs.replace(schedule, next_at=now)
    )
    assert has_work(acme, "acme")
    store.fire_schedules(10, 0.5)
    assert not has_work(acme, "acme")


@pytest.mark.requirement("N3")
def test_a_tenant_with_a_schedule_is_not_dropped_by_mistake(acme: TenantStores) -> None:
    put_schedule(acme)
    with pytest.raises(Refused, match="schedules"):
        acme.tenants.drop("acme")
    acme.store_of("acme").drop_schedule("books")
    acme.tenants.drop("acme")
