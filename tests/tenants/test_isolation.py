"""No tenant meets another: not in a statement, not in a job, a key, a lane or a limit."""

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
from tests import stores
from tests.store_postgres.explaining import explain
from tests.tenants.rooms import Rooms, add, ask

NAMES = load_statements(
    "freehold.store.postgres", {"schema": "s", "schema_key": "1", "control": "c", **STAGE_SQL}
)

TABLES = [table.encode() for table in (*stores.TABLES, "lease_bound")]


class _Anything(dict[str, object]):
    def __missing__(self, key: str) -> None:
        return None


@pytest.mark.requirement("S4.2")
def test_no_statement_names_a_schema_but_its_own() -> None:
    """I8: filled in for two tenants, they differ in the tenants' names and in nothing else."""
    acme, beta = Statements("tenant_acme", "1111"), Statements("tenant_beta", "2222")
    for name in NAMES:
        statement = Statement(name, _Anything(), [])
        of_acme, of_beta = acme.prepare(statement)[0], beta.prepare(statement)[0]
        assert b"tenant_beta" not in of_acme
        assert b"2222" not in of_acme
        ours = of_acme.replace(b"tenant_acme", b"tenant_beta").replace(b"1111", b"2222")
        assert ours == of_beta, name
        # Neither a fixed schema, nor the name of a table without one, which a search path finds.
        assert not re.search(rb"\b(freehold|public)\.(?!limits'|granted')", of_acme), name
        bare = re.search(
            rb"\b(?:from|join|into|update)\s+(?:%s)\b(?!\.)" % b"|".join(TABLES), of_acme
        )
        assert bare is None, name


#: What a tenant asks of its control schema: whether all tenants share a limit, and its part of it.
SHARED = {"claim", "claim_plain", "grant_leases", "shared_leases"}


@pytest.mark.requirement("S4.2", "P8")
def test_a_tenant_names_its_control_schema_for_the_shared_limit_only() -> None:
    acme = Statements("freehold_t_acme", "1111", "freehold")
    for name in NAMES:
        text = acme.prepare(Statement(name, _Anything(), []))[0]
        named = set(re.findall(rb"\bfreehold\.(?!limits'|granted')(\w+)", text))
        assert named <= {b"queue", b"grant_leases", b"leases_by_schema"}, name
        assert bool(named) == (name in SHARED), name


def test_no_function_of_a_schema_looks_for_names_elsewhere() -> None:
    """What a migration makes stands in its schema; only `awake` looks at others, by name."""
    for _, name, sql in load_migrations("freehold.store.postgres"):
        made = re.findall(r"^create (?:table|function|sequence) (\S+?)[ (]", sql, re.MULTILINE)
        assert made
        assert all(each.startswith("{schema}.") for each in made), name


@pytest.mark.requirement("S4.2")
def test_two_tenants_never_meet(house: Rooms) -> None:
    for name in ("acme", "beta"):
        house.tenancy.create(name)
    acme, beta = house.inside("acme"), house.inside("beta")
    shared = {"unique_key": "u", "idempotency_key": "i", "target": "lane", "limit_key": "k"}
    assert add(acme, **shared) == add(beta, **shared) == 1
    acme.set_queue_limit("*", Limit(0))
    acme.set_key_limit("k", Limit(0))
    acme.pause_lane("lane", "ann", None, None)
    acme.pause_queue("default", "ann", None, None)
    assert acme.claim(ask()) == []
    assert [attempt.job_id for attempt in beta.claim(ask("b"))] == [1]
    assert beta.queue_limits() == beta.key_limits() == []
    assert (acme.counts().ready, beta.counts().leased) == (1, 1)
    assert acme.delete([1]) == [1]
    assert beta.read([1])[1].lease is not None
    assert acme.read([1]) == {}


def test_control_schemas_whose_tenants_could_have_one_name_have_none() -> None:
    for schema in ("a_t_b", "a_t", "a_left_b", "_t_"):
        with pytest.raises(BadName, match="cannot have tenants"):
            PostgresShard("postgresql://nobody@nowhere/none", schema)
    with pytest.raises(BadName, match="1 to 48"):
        PostgresShard("postgresql://nobody@nowhere/none", "s" * 20).open("t" * 31)


@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_schema_that_is_not_ours_is_neither_taken_nor_dropped(house: Rooms) -> None:
    with psycopg.connect(house.urls[HOME_SHARD], autocommit=True) as connection:
        connection.execute("create schema freehold_t_acme create table precious (id int)")
        with pytest.raises(Exception, match="not Freehold's"):
            house.tenancy.create("acme")
        with pytest.raises(Exception, match="nothing was dropped"):
            house.places[HOME_SHARD].drop("acme")
        assert connection.execute("select * from freehold_t_acme.precious").fetchall() == []


@pytest.mark.requirement("S4.2", "S1.7")
@pytest.mark.parametrize("urls", ["postgres"], indirect=True)
def test_a_look_reads_little_however_much_a_tenant_has(house: Rooms) -> None:
    """Jobs that wait, that are leased and that are gone cost the look nothing."""
    house.tenancy.create("acme")
    with psycopg.connect(house.urls[HOME_SHARD], autocommit=True) as connection:
        connection.execute(
            "insert into freehold_t_acme.job (id, created_at, run_at, priority, max_attempts, "
            "stage, queue, task, args, lease_owner, lease_token, lease_expires_at, leased_at) "
            "select i, now(), now() + '1 day', 0, 1, case when i % 2 = 0 then 'h' else 'w' end, "
            "'default', 't', '{}', v.owner, v.token, v.until, v.since "
            "from generate_series(1, 20000) i, lateral (select "
            "case when i % 2 = 0 then 'w' end as owner, case when i % 2 = 0 then 1 end as token, "
            "case when i % 2 = 0 then now() + '1 day' end as until, "
            "case when i % 2 = 0 then now() end as since) v"
        )
        connection.execute("delete from freehold_t_acme.job where id % 4 = 0")
        query = psycopg.sql.SQL("select * from freehold.awake({})")
        look = query.format(["freehold_t_acme"])
        explain(connection, look)  # catalogs are read once
        reading = explain(connection, look)
        assert reading.buffers < 200, reading.story()
