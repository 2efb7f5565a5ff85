"""Migrations are applied once, and completely or not at all, even if killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from freehold.errors import BadName, SchemaTooNew, StoreError
from freehold.model.job import NewJob
from freehold.store.database import Migration
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from tests.concurrency import run_concurrently, wait_until
from tests.store_postgres.catalog import WAITING, catalog

ROOT = Path(__file__).parents[2]
KILLS = 16
AT_ONCE = 8
#: In the middle of the migration, wait for a lock that the test holds.
STOP_IN_THE_MIDDLE = """
create function stop() returns event_trigger language plpgsql as $$
begin
    if exists (select from pg_event_trigger_ddl_commands() where object_identity like '%job_due')
    then perform pg_advisory_lock(42); end if;
end $$;
create event trigger stop on ddl_command_end execute function stop();
select pg_advisory_lock(42);
"""


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def migrated(url: str, schema: str) -> int:
    """How many migrations it took."""
    database = PostgresDatabase(url, schema)
    try:
        applied = len(database.migrate())
        assert database.pending() == []
        return applied
    finally:
        database.close()


@pytest.mark.requirement("S2.1")
def test_eight_concurrent_migrators_apply_each_step_once(
    postgres_url: str, admin: Connection[Any]
) -> None:
    counts = run_concurrently([lambda: migrated(postgres_url, "freehold")] * AT_ONCE)
    known = len(PostgresDatabase(postgres_url).migration_sql())
    assert sum(counts) == known
    row = admin.execute("select count(*) from freehold.migration").fetchone()
    assert row == (known,)


@pytest.mark.requirement("S2.1")
def test_a_killed_migration_is_completed_by_the_next(
    postgres_url: str, admin: Connection[Any]
) -> None:
    begun = time.monotonic()
    migrated(postgres_url, "whole")
    took = time.monotonic() - begun
    command = [sys.executable, "-m", "tests.store_postgres.kill_migrations", postgres_url]
    schemas = subprocess.run(
        [*command, str(took), str(KILLS), str(KILLS // 4)],
        cwd=ROOT,
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout.split()
    assert len(schemas) >= KILLS
    whole = catalog(admin, "whole")
    for schema in schemas:
        migrated(postgres_url, schema)
        assert catalog(admin, schema) == whole


@pytest.mark.requirement("S2.1")
def test_a_backend_terminated_in_the_middle_leaves_nothing(
    postgres_url: str, admin: Connection[Any]
) -> None:
    migrated(postgres_url, "whole")
    admin.execute(STOP_IN_THE_MIDDLE)
    with ThreadPoolExecutor(1) as pool:
        migration = pool.submit(migrated, postgres_url, "broken")
        waiting = f"select pid {WAITING} and locktype = 'advisory'".encode()
        wait_until(lambda: admin.execute(waiting).fetchone() is not None, "it is in the middle")
        admin.execute(b"select pg_terminate_backend(pid) from (%s) w" % waiting)
        with pytest.raises(StoreError):
            migration.result()
    admin.execute("drop event trigger stop")
    assert admin.execute("select to_regnamespace('broken')").fetchone() == (None,)
    migrated(postgres_url, "broken")
    assert catalog(admin, "broken") == catalog(admin, "whole")


@pytest.mark.requirement("S2.1")
def test_a_schema_of_a_newer_program_is_left_alone(
    postgres_url: str, admin: Connection[Any]
) -> None:
    migrated(postgres_url, "freehold")
    admin.execute("insert into freehold.migration (version, name) values (999, 'future')")
    database = PostgresDatabase(postgres_url)
    for call in (database.migrate, database.pending):
        with pytest.raises(SchemaTooNew, match=r"version 999.*knows up to \d+: upgrade freehold"):
            call()
    database.close()


@pytest.mark.requirement("S4.2")
def test_two_schemas_in_one_database_are_independent(
    postgres_url: str, admin: Connection[Any]
) -> None:
    databases = [PostgresDatabase(postgres_url, name) for name in ("one", "two")]
    for database in databases:
        database.migrate()
    one, two = (Store(database.session()) for database in databases)
    key = NewJob(task="t", unique_key="k", idempotency_key="i")
    assert one.enqueue([key])[0].created
    assert two.counts().ready == 0
    assert two.enqueue([key])[0].created, "each schema has its own keys"
    one.pause_queue("default", "me", None, None)
    assert not two.queues()[0].paused
    admin.execute("drop schema one cascade")
    assert two.counts().ready == 1
    for database in databases:
        database.close()


@pytest.mark.requirement("S4.2")
@pytest.mark.parametrize(
    "name",
    [
        "",
        "Upper",
        "1st",
        "a-b",
        'a"b',
        "a.b",
        "a b",
        "pg_toast",
        "a;drop table x",
        "ä",
        "a" * 49,
        "a\n",
        None,
        7,
    ],
)
def test_a_schema_name_outside_the_whitelist_is_refused(name: Any) -> None:
    with pytest.raises(BadName, match="is not a usable name"):
        PostgresDatabase("postgresql:///nowhere", name)


@pytest.mark.requirement("S2.1")
def test_a_right_that_was_granted_on_a_function_outlives_later_migrations(
    postgres_url: str, admin: Connection[Any]
) -> None:
    """In a database that takes functions from the public. `create or replace` keeps the rights; a
    function that is dropped, to get other arguments, takes them along."""
    admin.execute("alter default privileges revoke execute on functions from public")
    with closing(_Until25(postgres_url)) as then:
        then.migrate()
    admin.execute("create role shop_of_old nologin")
    try:
        admin.execute("grant execute on all functions in schema freehold to shop_of_old")
        granted = _functions(admin, _IS_GRANTED)
        assert "enqueue" in granted
        migrated(postgres_url, "freehold")
        dropped = granted - _functions(admin, "true")
        assert _functions(admin, _IS_GRANTED) >= granted - dropped
    finally:
        admin.execute("drop owned by shop_of_old")
        admin.execute("drop role shop_of_old")


class _Until25(PostgresDatabase):
    """Migration 25 still dropped the function `enqueue` with its rights, and has landed."""

    def migration_sql(self) -> list[Migration]:
        return [each for each in super().migration_sql() if each.version <= 25]


_IS_GRANTED = "has_function_privilege('shop_of_old', oid, 'execute')"


def _functions(admin: Connection[Any], condition: str) -> set[str]:
    rows = admin.execute(
        "select proname from pg_proc where pronamespace = 'freehold'::regnamespace "
        f"group by proname having bool_and({condition})".encode()
    )
    return {name for (name,) in rows.fetchall()}


class _Next(PostgresDatabase):
    """A later version, with one more step."""

    def migration_sql(self) -> list[Migration]:
        known = super().migration_sql()
        version = known[-1].version + 1
        sql = "alter table {schema}.job add column next integer"
        return [*known, Migration(version, "next", self._script(version, "next", sql))]


@pytest.mark.requirement("S2.1")
def test_a_migration_that_waits_for_an_open_transaction_does_not_block_the_fleet(
    postgres_url: str, admin: Connection[Any]
) -> None:
    """Later statements would queue behind its lock, renewals too, and leases would expire."""
    migrated(postgres_url, "freehold")
    database, newer = PostgresDatabase(postgres_url), _Next(postgres_url)
    store = Store(database.session())
    with ThreadPoolExecutor(2) as pool, closing(database), closing(newer):
        with psycopg.connect(postgres_url) as handler:
            handler.execute("update freehold.job set reason = null")
            migration = pool.submit(newer.migrate)
            waiting = f"select pid {WAITING} and relation is not null".encode()
            wait_until(lambda: admin.execute(waiting).fetchone() is not None, "it waits")
            assert pool.submit(store.enqueue, [NewJob(task="t")]).result(timeout=30)[0].created
            assert not migration.done()
        assert [each.name for each in migration.result(timeout=60)] == ["next"]
