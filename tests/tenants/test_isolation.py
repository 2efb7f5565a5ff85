"""Tenants are isolated: in statements, jobs, keys, lanes and limits."""

from __future__ import annotations

import re

import psycopg
import pytest

from freehold.errors import BadName
from freehold.model.limit import Limit
from freehold.model.tenant import HOME_SHARD
from freehold.store.postgres.session import Statements
from freehold.store.postgres.shard import PostgresShard
from freehold.store.sqlfiles import load_migrations, load_statements
from freehold.store.stage_sql import STAGE_SQL
from freehold.store.statements import Statement
from tests.store_postgres.explaining import explain
from tests.stores import TABLES as JOB_TABLES
from tests.tenants.tenant_stores import TenantStores, add, claim_request

NAMES = load_statements(
    "freehold.store.postgres", {"schema": "s", "schema_key": "1", "control": "c", **STAGE_SQL}
)

TABLES = [table.encode() for table in (*JOB_TABLES, "shared_lease_upper_bound")]


class _Anything(dict[str, object]):
    def __missing__(self, key: str) -> list[object]:
        return []


@pytest.mark.requirement("S4.2")
def test_no_statement_names_a_schema_but_its_own() -> None:
    """I8: the statements of two tenants differ in the tenants' names only."""
    acme, beta = Statements("tenant_acme", "1111"), Statements("tenant_beta", "2222")
    for name in NAMES:
        statement = Statement(name, _Anything())
        of_acme, of_beta = acme.with_values(statement)[0], beta.with_values(statement)[0]
        assert b"tenant_beta" not in of_acme
        assert b"2222" not in of_acme
        renamed = of_acme.replace(b"tenant_acme", b"tenant_beta").replace(b"1111", b"2222")
        assert renamed == of_beta, name
        # No fixed schema, and no table without a schema, which the search path would find.
        assert not re.search(rb"\b(freehold|public)\.(?!limits'|granted'|flows')", of_acme), name
        bare = re.search(
            rb"\b(?:from|join|into|update)\s+(?:%s)\b(?!\.)" % b"|".join(TABLES), of_acme
        )
        assert bare is None, name


#: Statements that read the control schema: whether all tenants share a limit, and the grants.
SHARED = {"claim", "claim_plain", "grant_leases", "shared_leases"}


@pytest.mark.requirement("S4.2", "P8")
def test_a_tenant_names_its_control_schema_for_the_shared_limit_only() -> None:
    acme = Statements("freehold_t_acme", "1111", "freehold")
    for name in NAMES:
        text = acme.with_values(Statement(name, _Anything()))[0]
        named = set(re.findall(rb"\bfreehold\.(?!limits'|granted'|flows')(\w+)", text))
        assert named <= {b"queue", b"grant_leases", b"leases_by_schema"}, name
        assert bool(named) == (name in SHARED), name


def test_migrations_create_objects_in_their_own_schema_only() -> None:
    """Only `tenants_with_work` reads other schemas, by name."""
    for _, name, sql in load_migrations("freehold.store.postgres"):
        named = re.findall(
            r"^(?:create (?:or replace )?(?:table|function|sequence)|alter table|drop index) "
            r"(\S+?)[ (;]|^create (?:unique )?index \w+ on (\S+)",
            sql,
            re.MULTILINE,
        )
        assert all((a or b).startswith("{schema}.") for a, b in named), name
        assert named or "{schema}" in sql, name


@pytest.mark.requirement("S4.2")
def test_keys_lanes_limits_and_pauses_are_separate_for_each_tenant(stores: TenantStores) -> None:
    for name in ("acme", "beta"):
        stores.tenants.create(name)
    acme, beta = stores.store_of("acme"), stores.store_of("beta")
    shared = {"unique_key": "u", "idempotency_key": "i", "target": "lane", "limit_key": "k"}
    assert add(acme, **shared) == add(beta, **shared) == 1
    acme.set_queue_limit("*", Limit(0))
    acme.set_key_limit("k", Limit(0))
    acme.pause_lane("lane", "ann", None, None)
    acme.pause_queue("default", "ann", None, None)
    assert acme.claim(claim_request()) == []
    assert [attempt.job_id for attempt in beta.claim(claim_request("b"))] == [1]
    assert beta.queue_limits() == beta.key_limits() == []
    assert (acme.counts().ready, beta.counts().leased) == (1, 1)
    assert acme.delete([1]) == [1]
    assert beta.read([1])[1].lease is not None
    assert acme.read([1]) == {}


def test_control_schemas_with_ambiguous_tenant_names_cannot_have_tenants() -> None:
    for schema in ("a_t_b", "a_t", "a_left_b", "_t_"):
        with pytest.raises(BadName, match="cannot have tenants"):
            PostgresShard("postgresql://user@host/none", schema)
    with pytest.raises(BadName, match="1 to 48"):
        PostgresShard("postgresql://user@host/none", "s" * 20).open("t" * 31)


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_schema_of_another_program_is_neither_adopted_nor_dropped(stores: TenantStores) -> None:
    with psycopg.connect(stores.urls[HOME_SHARD], autocommit=True) as connection:
        connection.execute("create schema freehold_t_foreign create table precious (id int)")
        with pytest.raises(Exception, match="not Freehold's"):
            stores.tenants.create("foreign")
        with pytest.raises(Exception, match="nothing was dropped"):
            stores.shards[HOME_SHARD].drop("foreign")
        assert connection.execute("select * from freehold_t_foreign.precious").fetchall() == []


@pytest.mark.requirement("S4.2", "S1.7")
@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_check_reads_little_however_many_jobs_a_tenant_has(stores: TenantStores) -> None:
    """Scheduled, leased and deleted jobs cost the check nothing, nor do the rows that migrations
    insert and delete, even if an open snapshot keeps them from being removed."""
    url = stores.urls[HOME_SHARD]
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as connection:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from pg_class")
        stores.tenants.create("large")  # a tenant of this test only: no row of another was deleted
        connection.execute(
            "insert into freehold_t_large.job (id, created_at, run_at, priority, max_attempts, "
            "stage, queue, task, args, lease_owner, lease_token, lease_expires_at, leased_at) "
            "select i, now(), now() + '1 day', 0, 1, case when i % 2 = 0 then 'h' else 'w' end, "
            "'default', 't', '{}', v.owner, v.token, v.until, v.since "
            "from generate_series(1, 20000) i, lateral (select "
            "case when i % 2 = 0 then 'w' end as owner, case when i % 2 = 0 then 1 end as token, "
            "case when i % 2 = 0 then now() + '1 day' end as until, "
            "case when i % 2 = 0 then now() end as since) v"
        )
        connection.execute("delete from freehold_t_large.job where id % 4 = 0")
        query = psycopg.sql.SQL("select * from freehold.tenants_with_work({})")
        check = query.format(["freehold_t_large"])
        connection.execute(check)  # makes the plans, for which the planner reads ends of indexes
        # Migrations of other tests, or an ANALYZE, can make the session plan once more in between.
        reading = min((explain(connection, check) for _ in range(5)), key=lambda each: each.buffers)
        assert reading.buffers < 100, reading.story()
