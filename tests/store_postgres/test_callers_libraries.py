"""`connection=` takes the caller's own open transaction, whichever library holds it."""

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
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore, Store
from tests.store_postgres.libraries import (
    CALLERS,
    Opened,
    by_django,
    committing,
    django_connection,
    play,
)

every = pytest.mark.parametrize("opened", CALLERS.values(), ids=CALLERS)
keyed = pytest.mark.parametrize(
    "job",
    [NewJob(task="t", unique_key="k"), NewJob(task="t", idempotency_key="k")],
    ids=["unique", "idempotent"],
)


@pytest.fixture(autouse=True)
def orders(database: PostgresDatabase) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("drop table if exists public.orders")
        connection.execute("create table public.orders (id integer)")


def ordered(database: PostgresDatabase) -> list[int]:
    with psycopg.connect(database.url) as connection:
        return [row[0] for row in connection.execute("select id from public.orders order by id")]


@pytest.mark.requirement("S0.18")
@pytest.mark.parametrize("commits", [True, False], ids=["commits", "rolls back"])
@every
def test_jobs_and_the_callers_own_rows_are_there_together_or_not_at_all(
    database: PostgresDatabase, queue: Store, opened: Opened, commits: bool
) -> None:
    """The jobs come first: a transaction that the library does not know of would be lost."""
    jobs = [NewJob(task="t"), NewJob(task="t", delay_seconds=60.0, target="lane", tags=("a",))]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            one = await caller.enqueue(database, jobs[:1])
            more = await caller.enqueue(database, jobs)
            await caller.does("insert into public.orders values (1)")
            assert queue.counts().ready == 0, "nobody sees them before the commit"
            await caller.ends(commits=commits)
            return one + more

    answers = play(opened, scenario())
    assert all(answer.created for answer in answers)
    assert len(queue.read([answer.id for answer in answers])) == (3 if commits else 0)
    assert ordered(database) == ([1] if commits else [])


@pytest.mark.requirement("S0.18", "P9")
@keyed
@every
def test_a_key_that_is_taken_does_not_abort_the_transaction(
    database: PostgresDatabase, queue: Store, opened: Opened, job: NewJob
) -> None:
    first = queue.enqueue([job])[0]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            await caller.does("insert into public.orders values (1)")
            answers = await caller.enqueue(database, [job])
            await caller.does("insert into public.orders values (2)")
            await caller.ends(commits=True)
            return answers

    assert play(opened, scenario()) == [Enqueued(first.id, False)]
    assert ordered(database) == [1, 2]
    assert queue.counts().ready == 1


@pytest.mark.requirement("P9")
@every
def test_a_conflict_that_nobody_could_foresee_does_not_abort_it_either(
    database: PostgresDatabase, queue: Store, opened: Opened
) -> None:
    """The key's job ended, and the key is forgotten, but a row of it was left: as two callers at
    once see it. The statement meets the unique index, and looks again."""
    job = NewJob(task="t", idempotency_key="k")
    with psycopg.connect(database.url) as connection:
        connection.execute(_REFUSE_ONCE)

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            await caller.does("insert into public.orders values (1)")
            answers = await caller.enqueue(database, [job])
            await caller.ends(commits=True)
            return answers

    try:
        assert play(opened, scenario())[0].created
    finally:
        with psycopg.connect(database.url) as connection:
            connection.execute(_REFUSE_NO_MORE)
    assert ordered(database) == [1]
    assert queue.counts().ready == 1


#: A sequence is not rolled back with its savepoint: so it counts the tries.
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
def test_what_a_job_carries_arrives_as_it_was(
    database: PostgresDatabase, queue: Store, opened: Opened
) -> None:
    """Percent signs, dollars, quotes, backslashes, and a time."""
    odd = {"text": "100 % of $1 and %s, 'quoted' \"so\" \\ \n Grüße 💌", "list": [1, None, 2.5]}
    args = encode("the arguments", odd)
    jobs = [
        NewJob(task="t", queue="mail", args=args, priority=-7),
        NewJob(task="t", args=args, unique_key="50 %'s", timeout_seconds=1.5, tags=("x%y", "z'")),
        NewJob(task="t", args=args, limit_key="$2", pending=True),
    ]

    async def scenario() -> list[Enqueued]:
        async with opened(database.url) as caller:
            answers = []
            for job in jobs:
                answers += await caller.enqueue(database, [job])
            answers += await caller.enqueue(database, [jobs[0], jobs[2]] * 15)
            await caller.ends(commits=True)
            return answers

    answers = play(opened, scenario())
    found = queue.read([answer.id for answer in answers])
    stored = [found[answer.id] for answer in answers]
    assert {job.args for job in stored} == {args.decode()}
    assert stored[0].priority == -7
    assert (stored[1].unique_key, stored[1].tags) == ("50 %'s", ("x%y", "z'"))
    assert (stored[1].timeout_seconds, stored[2].limit_key) == (1.5, "$2")
    assert len(stored) == 33


@every
def test_a_schema_that_is_not_there_is_told_in_our_words(
    database: PostgresDatabase, opened: Opened
) -> None:
    elsewhere = PostgresDatabase(database.url, schema="nowhere")

    async def scenario() -> None:
        async with opened(database.url) as caller:
            try:
                with pytest.raises(SchemaMissing, match="freehold migrate"):
                    await caller.enqueue(elsewhere, [NewJob(task="t")])
            finally:
                await caller.ends(commits=False)

    play(opened, scenario())


@every
def test_what_else_goes_wrong_is_told_in_the_librarys_words(
    database: PostgresDatabase, opened: Opened
) -> None:
    """As by a statement of the caller's own."""

    async def told(caller: Any) -> list[type[BaseException]]:
        found: list[type[BaseException]] = []
        for what in ("select 1/0", None):
            try:
                if what is None:
                    await caller.enqueue(database, [NewJob(task="t")])
                else:
                    await caller.does(what)
            except Exception as error:
                found.append(type(error))
        return found

    async def scenario() -> list[type[BaseException]]:
        async with opened(database.url) as caller:
            try:
                return await told(caller)
            finally:
                await caller.ends(commits=False)

    by_hand, ours = play(opened, scenario())
    library = by_hand.__module__.partition(".")[0]
    if library == "psycopg":
        assert ours.__module__ == "freehold.errors"
    else:
        assert ours.__module__.partition(".")[0] == library


@pytest.mark.requirement("S0.18")
def test_without_a_block_django_commits_at_once(database: PostgresDatabase, queue: Store) -> None:
    connection = django_connection(database.url)
    job = NewJob(task="t", idempotency_key="k")
    inside = Store(database.caller_session(connection))
    assert inside.enqueue([job])[0].created
    assert not inside.enqueue([job])[0].created
    assert queue.counts().ready == 1
    connection.close()


def test_connections_that_cannot_be_meant_are_refused(database: PostgresDatabase) -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as lite, sqlite3.connect(":memory:") as own:
        for connection, why in (
            (lite, "SQLAlchemy, to sqlite: it must be open on the PostgreSQL of the jobs"),
            (own, "connection=sqlite3.Connection: enqueue takes an open connection of psycopg"),
            (engine, "connection=sqlalchemy.engine.base.Engine: enqueue takes an open connection"),
        ):
            with pytest.raises(BadInput, match=why):
                database.caller_session(connection)
    own.close()
    engine.dispose()


@every
def test_the_other_call_is_named_where_it_is_the_right_one(
    database: PostgresDatabase, opened: Opened
) -> None:
    async def scenario() -> None:
        async with opened(database.url) as caller:
            wrong: Any = (
                database.caller_session if caller.is_awaited else database.async_caller_session
            )
            right, not_ = ("aenqueue", "enqueue") if caller.is_awaited else ("enqueue", "aenqueue")
            with pytest.raises(BadInput, match=f"for that one call {right}, not {not_}"):
                wrong(caller.connection)
            await caller.ends(commits=False)

    play(opened, scenario())


def test_django_is_known_by_its_proxy_too(database: PostgresDatabase) -> None:
    from django.db import connection  # type: ignore[import-untyped] # what everybody imports

    async def scenario() -> list[Enqueued]:
        async with by_django(database.url) as caller:
            caller.connection = connection
            answers = await caller.enqueue(database, [NewJob(task="t")])
            await caller.ends(commits=False)
            return answers

    assert play(by_django, scenario())[0].created


@pytest.mark.requirement("S0.18", "P9")
@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "alchemy", "asyncpg", "async alchemy"])
def test_connections_that_commit_by_themselves_do_so(
    database: PostgresDatabase, queue: Store, driver: str
) -> None:
    """There is no savepoint outside of a transaction."""
    job = NewJob(task="t", idempotency_key="k")

    async def scenario() -> list[bool]:
        async with committing(driver, database.url) as caller:
            return [(await caller.enqueue(database, [job]))[0].created for _ in range(2)]

    assert asyncio.run(scenario()) == [True, False]
    assert queue.counts().ready == 1


@pytest.mark.requirement("S0.18", "P9")
@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_callers_pipeline_is_no_obstacle(
    database: PostgresDatabase, queue: Store, is_awaited: bool
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

    answers = asyncio.run(awaited()) if is_awaited else blocking()
    assert [answer.created for answer in answers] == [True, True, False, True]
    assert ordered(database) == [1]
    assert queue.counts().ready == 3
