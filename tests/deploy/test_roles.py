"""deploy/postgres/roles.sql on a real server: what each role may do, and what it may not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from freehold import Debounce, Freehold, MissingPrivilege, Throttle, Unique
from freehold.errors import FreeholdError
from freehold.model.flow import FlowState
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.deploy.roles import Roles

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"


def enqueue(app: Freehold, **options: Any) -> int:
    job_id: int = app.tasks.get("quick").using(**options).enqueue().id
    return job_id


def test_a_worker_runs_jobs_and_operates_on_them(roles: Roles) -> None:
    app = roles.app("worker")
    first = enqueue(app, target="a")
    second = enqueue(app, target="b", idempotency_key="k")
    broken = app.tasks.get("broken").enqueue().id
    assert app.run_worker(until_idle=True) == 0
    found = app._client.store.read([first, second, broken])
    assert [found[i].state for i in (first, second, broken)] == [
        State.SUCCEEDED,
        State.SUCCEEDED,
        State.FAILED,
    ]
    assert app.operator.retry(broken, by="ann")[0].status == "done"
    app.operator.pause_queue("default", "ann")
    app.operator.resume_queue("default")
    assert app._client.store.apply_retention(30, 100) == 0  # rotates partitions of the owner


def test_a_worker_changes_no_tables_and_no_versions(roles: Roles) -> None:
    for sql in (
        "drop table freehold.job",
        "alter table freehold.job add column x integer",
        "truncate freehold.history",
        "create table freehold.x (i integer)",
        "insert into freehold.migration (version, name) values (99, 'x')",
        "alter function freehold.clock() volatile",
    ):
        roles.refuses("worker", sql)


#: A view in front of a catalog table. A function in a view runs with the rights of the reader.
IN_FRONT_OF_THE_CATALOG = """
create function pg_temp.take_over() returns oid language plpgsql as $$
begin
    if current_user <> session_user then
        create table if not exists freehold.taken_over (by text);
    end if;
    return 0::oid;
end $$;
create temp view pg_class as
    select pg_temp.take_over() as oid, 'nothing'::name as relname from pg_catalog.pg_class limit 1;
create temp view pg_inherits as
    select pg_temp.take_over() as inhrelid, 0::oid as inhparent from pg_catalog.pg_class limit 1;
grant select on pg_temp.pg_class, pg_temp.pg_inherits to public;
"""


def test_a_worker_cannot_put_its_own_catalog_in_front_of_a_function_of_the_owner(
    roles: Roles,
) -> None:
    with psycopg.connect(roles.app("worker").url) as connection:
        connection.execute(IN_FRONT_OF_THE_CATALOG.encode())
        connection.execute("select freehold.rotate_partitions(36500, 0)")
        found = connection.execute("select to_regclass('freehold.taken_over')").fetchone()
    assert found == (None,)


def test_functions_search_the_temporary_schema_last(roles: Roles) -> None:
    """PostgreSQL searches it first for tables, unless the search path names it."""
    owner = roles.app("owner")
    owner.tenants.create("acme")
    unsafe = roles.admin.execute(
        """
        select p.oid::regprocedure::text from pg_proc p
        cross join lateral (
            select setting from unnest(p.proconfig) setting where setting like 'search_path=%') s
        where p.pronamespace::regnamespace::text like 'freehold%'
          and s.setting !~ ', *pg_temp$'
        union all
        select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace::regnamespace::text like 'freehold%' and p.prosecdef
          and not exists (
            select from unnest(p.proconfig) setting where setting like 'search_path=%')
        """
    ).fetchall()
    assert unsafe == []
    definers = roles.admin.execute(
        "select pronamespace::regnamespace::text from pg_proc where prosecdef "
        "and pronamespace::regnamespace::text like 'freehold%' order by 1"
    ).fetchall()
    assert {schema for (schema,) in definers} == {"freehold", "freehold_t_acme"}


def test_a_producer_enqueues_with_and_without_keys(roles: Roles) -> None:
    app = roles.app("producer")
    for options in (
        {},
        {"target": "a"},
        {"unique_key": "u"},
        {"idempotency_key": "i"},
        {"delay": 60.0},
        {"unique_key": "v", "idempotency_key": "j"},
    ):
        assert enqueue(app, **options) > 0
    assert enqueue(app, unique_key="u") == enqueue(app, unique_key="u")
    assert enqueue(app, idempotency_key="i") == enqueue(app, idempotency_key="i")
    with psycopg.connect(app.url) as connection:
        row = connection.execute("select id from freehold.enqueue('quick')").fetchone()
    assert row is not None
    assert len(roles.app("viewer").operator.jobs(JobFilter(limit=100)).jobs) == 7
    # Notifications are sent after the job, and no caller waits for them: a missing right would
    # go unnoticed.
    query = "select topic from freehold.last_notified order by topic"
    assert roles.admin.execute(query.encode()).fetchall() == [("+default",), ("@",)]


@pytest.mark.requirement("N4")
def test_a_producer_finds_the_job_that_waits_but_replaces_nothing(roles: Roles) -> None:
    app = roles.app("producer")
    first = enqueue(app, unique=Unique("k", "start"))
    assert enqueue(app, unique=Unique("k", "start")) == first
    for options in (
        {"unique": Unique("k", "start", ("args",))},
        {"debounce": Debounce("k", 30)},
        {"throttle": Throttle("k", 30)},
    ):
        with pytest.raises(MissingPrivilege):
            enqueue(app, **options)
    assert len(roles.app("viewer").operator.jobs(JobFilter(limit=100)).jobs) == 1


@pytest.mark.requirement("N11", "N12")
def test_a_producer_stores_no_flows_and_a_worker_does(roles: Roles) -> None:
    def store(name: str) -> None:
        app = roles.app(name)
        quick = app.tasks.get("quick")
        app.batch([quick.prepare()], name="b")
        with app.workflow("w") as flow:
            flow.map(quick, [], after=flow.add(quick))

    with pytest.raises(MissingPrivilege):
        store("producer")
    with pytest.raises(MissingPrivilege), roles.app("producer").workflow("w") as flow:
        flow.add(roles.app("producer").tasks.get("quick"))
    operator = roles.app("worker")
    assert operator._client.store.flows(10) == []
    assert operator._client.store.counts().ready == 0
    store("worker")
    assert operator.run_worker(until_idle=True) == 0
    found = operator._client.store.flows(10)
    assert {flow.state for flow in found} == {FlowState.SUCCEEDED}


@pytest.mark.requirement("N9")
def test_a_producer_sends_signals_and_reads_none(roles: Roles) -> None:
    app = roles.app("producer")
    assert app.send_signal("paid:7", {"cents": 4200}, by="shop")
    assert not app.send_signal("paid:7", {"cents": 1})
    with roles.connect("producer") as connection:
        assert connection.execute("select freehold.send_signal('paid:8')").fetchone() == (True,)
        for wrong in (
            "null",
            "''",
            "repeat('x', 201)",
            "'x', null",
            "'x', to_json(repeat('x', 1048576))",
            "'x', '1', interval '0'",
            "'x', '1', interval '11 years'",
            "'x', '1', 'infinity'",
            "'x', '1', '1 day', ''",
            r"'x', '1', '1 day', E'a\u202E'",
        ):
            with pytest.raises(psycopg.DataError):
                connection.execute(f"select freehold.send_signal({wrong})".encode())
    for sql in (
        "select value from freehold.signal",
        "insert into freehold.signal (name, value, at, expires_at) values ('x', '1', now(), now())",
        "update freehold.signal set value = '1'",
        "delete from freehold.signal",
    ):
        roles.refuses("producer", sql)
    roles.refuses("viewer", "select freehold.send_signal('paid:9')")
    found = roles.app("viewer").operator.signals()
    assert [(each.name, each.by) for each in found] == [("paid:7", "shop"), ("paid:8", None)]
    assert roles.app("worker").send_signal("paid:9")


def test_a_producer_reads_no_jobs_and_changes_none(roles: Roles) -> None:
    job_id = enqueue(roles.app("producer"))
    for sql in (
        "select args from freehold.job",
        "select * from freehold.history",
        "select * from freehold.event",
        "select * from freehold.worker",
        f"update freehold.job set priority = 9 where id = {job_id}",
        f"delete from freehold.job where id = {job_id}",
        "insert into freehold.queue (name, max_leases) values ('default', 0)",
        "select nextval('freehold.lease_token')",
        "select freehold.rotate_partitions(0, 0)",
    ):
        roles.refuses("producer", sql)


def test_a_viewer_reads_everything_and_writes_nothing(roles: Roles) -> None:
    job_id = enqueue(roles.app("producer"))
    app = roles.app("viewer")
    assert app.operator.show(job_id).job.id == job_id
    assert app.operator.counts().ready == 1
    assert [queue.name for queue in app.operator.queues()] == ["default"]
    assert app.operator.workers() == []
    assert all(each.good for each in app._database.diagnose() if "version" in each.name)
    with psycopg.connect(app.url) as connection:
        assert connection.execute("select freehold.backlog()").fetchone() == (1,)
    with pytest.raises(FreeholdError):
        enqueue(app)
    with pytest.raises(FreeholdError):
        app.operator.cancel(job_id, by="ann")
    for sql in (
        f"delete from freehold.job where id = {job_id}",
        "update freehold.queue set weight = 2",
        "select nextval('freehold.job_id')",
        "select freehold.rotate_partitions(0, 0)",
    ):
        roles.refuses("viewer", sql)


def test_another_role_sees_nothing(roles: Roles) -> None:
    roles.admin.execute(f"create role {roles.user('other')} login".encode())
    try:
        roles.refuses("other", "select * from freehold.job")
        roles.refuses("other", "select * from freehold.enqueue('quick')")
    finally:
        roles.admin.execute(f"drop role {roles.user('other')}".encode())


@pytest.mark.parametrize("lock", ["leases of freehold", "freehold migrate freehold"])
def test_doctor_names_a_session_of_another_role_that_holds_a_lock(roles: Roles, lock: str) -> None:
    def checked() -> tuple[bool, str]:
        (found,) = (each for each in viewer._database.diagnose() if each.name == "locks")
        return found.good, found.detail

    viewer = roles.app("viewer")
    roles.admin.execute(f"create role {roles.user('other')} login".encode())
    taken = "select pg_advisory_lock(hashtextextended(%s, 0))"
    try:
        with roles.connect("worker") as own, roles.connect("other") as other:
            other.execute(taken, ("a lock of another program",))
            own.execute(taken, (lock,))
            assert checked()[0], "locks of other names, and of our roles, are as they should be"
            own.close()
            other.execute(taken, (lock,))
            good, detail = checked()
            assert not good
            assert f"session {other.info.backend_pid} of {roles.user('other')}" in detail
    finally:
        roles.admin.execute(f"drop role {roles.user('other')}".encode())


def test_a_database_can_be_closed_to_all_other_users(roles: Roles) -> None:
    """By the statements of the page of deployment."""
    (block,) = re.findall(r"```sql\n(revoke connect, .*?)```", PAGE.read_text(), re.DOTALL)
    database = roles.admin.info.dbname
    roles.admin.execute(f"create role {roles.user('other')} login".encode())
    try:
        roles.execute(block.replace("database shop", f"database {database}"))
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            roles.connect("other")
        roles.refuses("worker", "create temp table pg_class (oid oid)")
        app = roles.app("worker")
        enqueue(app, target="a")
        assert app.run_worker(until_idle=True) == 0
    finally:
        roles.admin.execute(f"grant connect, temporary on database {database} to public".encode())
        roles.admin.execute(f"drop role {roles.user('other')}".encode())


def test_functions_are_granted_where_the_database_takes_them_from_the_public(
    postgres_url: str,
) -> None:
    roles = Roles(postgres_url)
    try:
        roles.set_up(
            "alter default privileges for role freehold_owner "
            "revoke execute on functions from public"
        )
        enqueue(roles.app("producer"), unique_key="u")
        with roles.connect("producer") as connection:
            connection.execute("select id from freehold.enqueue('quick', '{}')")
        assert roles.app("viewer").operator.counts().ready == 2
        app = roles.app("worker")
        assert app.run_worker(until_idle=True) == 0
        assert {each.state for each in app.operator.jobs(JobFilter()).jobs} == {State.SUCCEEDED}
        roles.refuses("producer", "select freehold.rotate_partitions(1, 0)")
        roles.refuses("worker", "select freehold.advance_sequences()")
    finally:
        roles.close()


def test_the_file_can_be_run_again(roles: Roles) -> None:
    roles.run_file()
    roles.run_file()


def test_objects_of_another_owner_are_reported_and_nothing_is_granted(roles: Roles) -> None:
    """A function that runs as its owner would give the rights of that owner."""
    roles.admin.execute("create function freehold.mine() returns int language sql as 'select 1'")
    roles.admin.execute(f"revoke usage on schema freehold from {roles.role('viewer')}".encode())
    with pytest.raises(psycopg.errors.RaiseException, match=r"mine\(\) belongs to postgres"):
        roles.run_file()
    roles.refuses("viewer", "select count(*) from freehold.job")
    roles.admin.execute("drop function freehold.mine()")
    roles.run_file()


@pytest.mark.parametrize("name", ["worker", "producer", "viewer"])
def test_only_the_owner_migrates(roles: Roles, name: str) -> None:
    roles.admin.execute(
        "delete from freehold.migration "
        "where version = (select max(version) from freehold.migration)"
    )
    with pytest.raises((FreeholdError, InsufficientPrivilege)):
        roles.app(name).migrate()
