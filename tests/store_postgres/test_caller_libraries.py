"""`connection=` takes the caller's own open transaction, of any supported library."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine

from freehold.errors import BadInput, SchemaMissing
from freehold.model.job import Enqueued, NewJob
from freehold.model.payload import encode
from freehold.model.waiting import Throttle, waiting_of
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore, Store
from tests.store_postgres.caller_libraries import (
    CALLERS,
    OpenCaller,
    by_django,
    django_connection,
    in_autocommit,
    run_scenario,
)
from tests.stores import is_found

every = pytest.mark.parametrize("opened", CALLERS.values(), ids=CALLERS)
keyed = pytest.mark.parametrize(
    "job",
    [NewJob(task="t", unique_key="k"), NewJob(task="t", idempotency_key="k")],
    ids=["unique", "idempotent"],
)


@pytest.fixture(autouse=True)
def orders(database: PostgresDatabase) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("create table if not exists public.orders (id integer)")
        connection.execute("delete from public.orders")


def ordered(database: PostgresDatabase) -> list[int]:
    with psycopg.connect(database.url) as connection:
        return [row[0] for row in connection.execute("select id from public.orders order by id")]


@pytest.mark.requirement("S0.18")
@pytest.mark.parametrize("commits", [True, False], ids=["commits", "rolls back"])
@every
def test_jobs_and_the_callers_own_rows_are_written_together_or_not_at_all(
    database: PostgresDatabase, queue: Store, opened: OpenCaller, commits: bool
) -> None:
    """The jobs come first: the library must know of the transaction that they begin."""
    jobs = [NewJob(task="t"), NewJob(task="t", delay_seconds=60.0, target="lane", tags=("a",))]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            one = await caller.enqueue(database, jobs[:1])
            more = await caller.enqueue(database, jobs)
            await caller.execute("insert into public.orders values (1)")
            assert queue.counts().ready == 0, "not visible before the commit"
            await caller.end(commits=commits)
            return one + more

    results = run_scenario(opened, scenario())
    assert all(result.created for result in results)
    assert len(queue.read([result.id for result in results])) == (3 if commits else 0)
    assert ordered(database) == ([1] if commits else [])


@every
def test_a_plain_job_is_stored_whatever_the_date_style_of_the_caller(
    database: PostgresDatabase, queue: Store, opened: OpenCaller
) -> None:
    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            await caller.execute("set local datestyle to 'German, DMY'")
            results = await caller.enqueue(database, [NewJob(task="t")])
            await caller.end(commits=True)
            return results

    (made,) = run_scenario(opened, scenario())
    assert made.created_at == queue.read([made.id])[made.id].created_at


@pytest.mark.requirement("S0.18", "P9")
@keyed
@every
def test_a_key_that_is_taken_does_not_abort_the_transaction(
    database: PostgresDatabase, queue: Store, opened: OpenCaller, job: NewJob
) -> None:
    first = queue.enqueue([job])[0]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            await caller.execute("insert into public.orders values (1)")
            results = await caller.enqueue(database, [job])
            await caller.execute("insert into public.orders values (2)")
            await caller.end(commits=True)
            return results

    assert is_found(run_scenario(opened, scenario())[0], first)
    assert ordered(database) == [1, 2]
    assert queue.counts().ready == 1


@pytest.mark.requirement("P9")
@every
def test_an_unforeseen_conflict_does_not_abort_the_transaction(
    database: PostgresDatabase, queue: Store, opened: OpenCaller
) -> None:
    """The key is free in the snapshot of the statement, but a concurrent caller has inserted it.
    The statement violates the unique index, and is repeated."""
    job = NewJob(task="t", idempotency_key="k")
    with psycopg.connect(database.url) as connection:
        connection.execute(_REFUSE_ONCE)

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            await caller.execute("insert into public.orders values (1)")
            results = await caller.enqueue(database, [job])
            await caller.end(commits=True)
            return results

    try:
        assert run_scenario(opened, scenario())[0].created
    finally:
        with psycopg.connect(database.url) as connection:
            connection.execute(_REFUSE_NO_MORE)
    assert ordered(database) == [1]
    assert queue.counts().ready == 1


#: A sequence is not rolled back with the savepoint, so it counts the tries.
_REFUSE_ONCE = """
    create sequence public.tries;
    create function public.refuse_once() returns trigger language plpgsql as $$
    begin
        if nextval('public.tries') = 1 then
            raise unique_violation using constraint = 'idempotency_pkey';
        end if;
        return new;
    end $$;
    create trigger refuse_once before insert on freehold.idempotency
        for each row execute function public.refuse_once()
"""
_REFUSE_NO_MORE = """
    drop trigger refuse_once on freehold.idempotency;
    drop function public.refuse_once;
    drop sequence public.tries
"""


@every
def test_all_values_of_a_job_arrive_unchanged(
    database: PostgresDatabase, queue: Store, opened: OpenCaller
) -> None:
    """Percent signs, dollars, quotes, backslashes, and a time."""
    special = {"text": "100 % of $1 and %s, 'quoted' \"so\" \\ \n Grüße 💌", "list": [1, None, 2.5]}
    args = encode("the arguments", special)
    jobs = [
        NewJob(task="t", queue="mail", args=args, priority=-7),
        NewJob(task="t", args=args, unique_key="50 %'s", timeout_seconds=1.5, tags=("x%y", "z'")),
        NewJob(task="t", args=args, limit_key="$2", pending=True),
    ]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            results = []
            for job in jobs:
                results += await caller.enqueue(database, [job])
            results += await caller.enqueue(database, [jobs[0], jobs[2]] * 15)
            await caller.end(commits=True)
            return results

    results = run_scenario(opened, scenario())
    found = queue.read([result.id for result in results])
    stored = [found[result.id] for result in results]
    assert {job.args for job in stored} == {args.decode()}
    assert stored[0].priority == -7
    assert (stored[1].unique_key, stored[1].tags) == ("50 %'s", ("x%y", "z'"))
    assert (stored[1].timeout_seconds, stored[2].limit_key) == (1.5, "$2")
    assert len(stored) == 33


@every
def test_a_missing_schema_raises_an_error_of_freehold(
    database: PostgresDatabase, opened: OpenCaller
) -> None:
    elsewhere = PostgresDatabase(database.url, schema="nowhere")

    async def scenario() -> None:
        async with opened(database.url) as caller:
            try:
                with pytest.raises(SchemaMissing, match="freehold migrate"):
                    await caller.enqueue(elsewhere, [NewJob(task="t")])
            finally:
                await caller.end(commits=False)

    run_scenario(opened, scenario())


@every
def test_other_errors_are_raised_as_errors_of_the_library(
    database: PostgresDatabase, opened: OpenCaller
) -> None:
    """As for a statement of the caller itself."""

    async def error_types(caller: Any) -> list[type[BaseException]]:
        found: list[type[BaseException]] = []
        for what in ("select 1/0", None):
            try:
                if what is None:
                    await caller.enqueue(database, [NewJob(task="t")])
                else:
                    await caller.execute(what)
            except Exception as error:
                found.append(type(error))
        return found

    async def scenario() -> list[type[BaseException]]:
        async with opened(database.url) as caller:
            try:
                return await error_types(caller)
            finally:
                await caller.end(commits=False)

    by_hand, raised = run_scenario(opened, scenario())
    library = by_hand.__module__.partition(".")[0]
    if library == "psycopg":
        assert raised.__module__ == "freehold.errors"
    else:
        assert raised.__module__.partition(".")[0] == library


@pytest.mark.requirement("S0.18")
def test_django_without_a_transaction_block_commits_at_once(
    database: PostgresDatabase, queue: Store
) -> None:
    connection = django_connection(database.url)
    job = NewJob(task="t", idempotency_key="k")
    inside = Store(database.caller_session(connection))
    assert inside.enqueue([job])[0].created
    assert not inside.enqueue([job])[0].created
    assert queue.counts().ready == 1
    connection.close()


def test_connections_to_other_databases_are_refused(database: PostgresDatabase) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as lite, sqlite3.connect(":memory:") as own:
        for connection, why in (
            (lite, "a SQLAlchemy connection to sqlite: it must be open on the PostgreSQL database"),
            (own, "connection=sqlite3.Connection: enqueue takes an open connection of psycopg"),
            (engine, "connection=sqlalchemy.engine.base.Engine: enqueue takes an open connection"),
        ):
            with pytest.raises(BadInput, match=why):
                database.caller_session(connection)
    own.close()
    engine.dispose()


@every
def test_the_error_names_the_call_that_fits_the_connection(
    database: PostgresDatabase, opened: OpenCaller
) -> None:
    async def scenario() -> None:
        async with opened(database.url) as caller:
            wrong: Any = (
                database.caller_session if caller.is_async else database.async_caller_session
            )
            right, wrong_call = (
                ("aenqueue", "enqueue") if caller.is_async else ("enqueue", "aenqueue")
            )
            with pytest.raises(BadInput, match=f"call {right} with it, not {wrong_call}"):
                wrong(caller.connection)
            await caller.end(commits=False)

    run_scenario(opened, scenario())


def test_the_connection_proxy_of_django_is_recognized(database: PostgresDatabase) -> None:
    from django.db import connection  # as applications import it

    async def scenario() -> list[Enqueued]:
        async with by_django(database.url) as caller:
            caller.connection = connection
            results = await caller.enqueue(database, [NewJob(task="t")])
            await caller.end(commits=False)
            return results

    assert run_scenario(by_django, scenario())[0].created


@pytest.mark.requirement("S0.18", "P9")
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "alchemy", "asyncpg", "async alchemy"])
def test_connections_in_autocommit_commit_at_once(
    database: PostgresDatabase, queue: Store, driver: str
) -> None:
    """No savepoint is possible outside a transaction."""
    job = NewJob(task="t", idempotency_key="k")

    async def scenario() -> list[bool]:
        async with in_autocommit(driver, database.url) as caller:
            return [(await caller.enqueue(database, [job]))[0].created for _ in range(2)]

    assert asyncio.run(scenario()) == [True, False]
    assert queue.counts().ready == 1


@pytest.mark.requirement("S0.18", "N4")
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "alchemy", "asyncpg", "async alchemy"])
def test_a_throttle_on_a_connection_in_autocommit_is_one_transaction(
    database: PostgresDatabase, queue: Store, driver: str
) -> None:
    """Its window, its job and the end of its window are stored together, or none of them."""
    waiting = waiting_of("t", Throttle("k", 60))

    async def scenario() -> list[bool]:
        async with in_autocommit(driver, database.url) as caller:
            job, broken = (NewJob(task="t", queue=name, waiting=waiting) for name in ("q", "\0"))
            with pytest.raises(Exception, match=r"(?i)unicode"):
                await caller.enqueue(database, [broken])
            assert windows("true") == 0, "the lock of its window was rolled back"
            return [(await caller.enqueue(database, [job]))[0].created for _ in range(2)]

    def windows(condition: str) -> int:
        query = f"""select count(*) from freehold.throttle w
            left join freehold.job j on j.waiting_key = w.key where {condition}"""
        with psycopg.connect(database.url) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])

    assert asyncio.run(scenario()) == [True, False]
    assert queue.counts().ready == 1
    assert windows("w.xmin = j.xmin") == 1, "the last transaction has written both"


@pytest.mark.requirement("S0.18", "P9")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_connection_in_pipeline_mode_is_accepted(
    database: PostgresDatabase, queue: Store, is_async: bool
) -> None:
    jobs = [NewJob(task="t"), NewJob(task="t", unique_key="k")]

    async def awaited() -> list[Enqueued]:
        async with (
            await psycopg.AsyncConnection.connect(database.url) as connection,
            connection.pipeline(),
        ):
            store = AsyncStore(database.async_caller_session(connection))
            await connection.execute("insert into public.orders values (1)")
            return [(await store.enqueue(part))[0] for part in (jobs[:1], jobs[1:], jobs[1:], jobs)]

    def blocking() -> list[Enqueued]:
        with psycopg.connect(database.url) as connection, connection.pipeline():
            store = Store(database.caller_session(connection))
            connection.execute("insert into public.orders values (1)")
            return [store.enqueue(part)[0] for part in (jobs[:1], jobs[1:], jobs[1:], jobs)]

    results = asyncio.run(awaited()) if is_async else blocking()
    assert [result.created for result in results] == [True, True, False, True]
    assert ordered(database) == [1]
    assert queue.counts().ready == 3
