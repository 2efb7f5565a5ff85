"""A tenant with any live job is dropped by force only, whatever the job waits for."""

from __future__ import annotations

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from freehold.errors import Refused, StoreError, StoreUnavailable, TenantNotFound
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.state import NEEDS_LANE, Stage
from freehold.model.tenant import HOME_SHARD
from freehold.store.sqlite.shard import SqliteShard
from freehold.store.stage_sql import stage_byte
from freehold.store.store import Store
from freehold.store.types import AttemptEnd
from tests.tenants.tenant_stores import TenantStores, add, claim_request

ROUNDS = 3


def job_in(stores: TenantStores, stage: Stage) -> int:
    """The tenant's one job. A lease needs more columns than the stage, so that job is claimed."""
    store = stores.store_of("acme")
    job_id = add(store, target="lane" if stage in NEEDS_LANE else None)
    if stage is Stage.LEASED:
        store.claim(claim_request())
    else:
        _write_stage(stores, stage)
    assert store.read([job_id])[job_id].stage is stage
    return job_id


def _write_stage(stores: TenantStores, stage: Stage) -> None:
    if stores.kind == "postgres":
        with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
            connection.execute("update freehold_t_acme.job set stage = %s", (stage_byte(stage),))
    else:
        path = SqliteShard(Path(stores.urls[HOME_SHARD])).path_of("acme")
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("update job set stage = ?", (stage_byte(stage),))


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize("stage", Stage)
def test_one_live_job_in_any_stage_prevents_the_drop(stores: TenantStores, stage: Stage) -> None:
    stores.tenants.create("acme")
    job_id = job_in(stores, stage)
    with pytest.raises(Refused, match=r"acme has live jobs or schedules:.*--force"):
        stores.tenants.drop("acme")
    assert stores.store_of("acme").read([job_id])[job_id].stage is stage
    assert [tenant.name for tenant in stores.tenants.all()] == ["acme"]
    stores.tenants.drop("acme", force=True)
    assert stores.tenants.all() == []


def test_finished_jobs_do_not_prevent_the_drop(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    store = stores.store_of("acme")
    add(store)
    (attempt,) = store.claim(claim_request())
    assert store.has_live_jobs()
    store.finish("w", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
    assert not store.has_live_jobs()
    stores.tenants.drop("acme")
    assert stores.tenants.all() == []


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_schema_without_its_functions_is_not_taken_for_an_empty_one(
    stores: TenantStores,
) -> None:
    """As a schema of another version: the store reports both as SchemaMissing."""
    stores.tenants.create("acme")
    job_id = add(stores.store_of("acme"))
    with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
        connection.execute("drop function freehold_t_acme.job_counts")
    with pytest.raises(Refused, match="has live jobs"):
        stores.tenants.drop("acme")
    assert job_id in stores.store_of("acme").read([job_id])


def test_a_job_enqueued_after_the_check_prevents_the_drop(stores: TenantStores) -> None:
    """The shard checks again, in the step that removes the tenant."""
    stores.tenants.create("acme")
    store = stores.store_of("acme")
    assert not store.has_live_jobs()
    job_id = add(store)
    assert not stores.shards[HOME_SHARD].drop("acme", only_if_empty=True)
    assert job_id in stores.store_of("acme").read([job_id])


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_an_enqueue_that_is_not_committed_yet_is_not_overlooked(stores: TenantStores) -> None:
    stores.tenants.create("acme")
    database = stores.shards[HOME_SHARD].open("acme")
    with psycopg.connect(stores.urls[HOME_SHARD]) as connection:
        job_id = add(Store(database.caller_session(connection)))
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            stores.tenants.drop("acme")
    assert job_id in stores.store_of("acme").read([job_id])


@pytest.mark.requirement("S4.2")
def test_no_acknowledged_job_is_lost_by_a_drop_at_the_same_time(stores: TenantStores) -> None:
    for _ in range(ROUNDS):
        stores.tenants.create("acme")
        store, start = stores.store_of("acme"), Barrier(2)

        def enqueue(store: Store = store, start: Barrier = start) -> int | None:
            start.wait()
            try:
                return add(store)
            except (StoreError, TenantNotFound):
                return None

        with ThreadPoolExecutor(1) as pool:
            enqueued = pool.submit(enqueue)
            start.wait()
            with contextlib.suppress(Refused, StoreUnavailable):
                stores.tenants.drop("acme")
            job_id = enqueued.result()
        is_there = [tenant.name for tenant in stores.tenants.all()] == ["acme"]
        if job_id is not None:
            assert is_there
            assert job_id in stores.store_of("acme").read([job_id])
        if is_there:
            stores.tenants.drop("acme", force=True)
