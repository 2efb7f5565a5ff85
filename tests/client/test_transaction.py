"""connection=: the job exists if and only if the caller's transaction commits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from freehold import BadInput, Freehold
from tests.client.helpers import agreet, claimed, greet, jobs_of

pytestmark = pytest.mark.requirement("S0.18")


@pytest.fixture
def connection(postgres_app: Freehold) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_app.url) as connection:
        yield connection
        connection.rollback()


def test_a_rolled_back_transaction_leaves_no_job(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    handle = postgres_app.task(greet).using(connection=connection).enqueue("Ann")
    assert handle.created
    assert jobs_of(postgres_app) == ()
    connection.rollback()
    assert jobs_of(postgres_app) == ()


def test_a_committed_transaction_leaves_exactly_one_job(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    handle = postgres_app.task(greet).using(connection=connection).enqueue("Ann")
    assert claimed(postgres_app) == []
    connection.commit()
    assert [job.id for job in jobs_of(postgres_app)] == [handle.id]
    assert [attempt.job_id for attempt in claimed(postgres_app)] == [handle.id]


def test_the_callers_own_writes_commit_or_roll_back_with_the_job(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("create temporary table orders (id integer)")
    connection.commit()
    task = postgres_app.task(greet).using(connection=connection)
    for end in (connection.rollback, connection.commit):
        connection.execute("insert into orders values (1)")
        task.enqueue("Ann")
        end()
        row = connection.execute("select count(*) from orders").fetchone()
        assert row is not None
        assert row[0] == len(jobs_of(postgres_app))


def test_many_jobs_in_one_transaction(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    task = postgres_app.task(greet)
    many = [task.prepare(f"n{number}") for number in range(1200)]
    postgres_app.enqueue_many(many, connection=connection)
    assert jobs_of(postgres_app) == ()
    connection.commit()
    assert len(claimed(postgres_app)) == 1000


def test_a_key_that_is_taken_does_not_break_the_transaction(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    task = postgres_app.task(greet).using(unique_key="k", idempotency_key="i")
    first = task.enqueue("Ann")
    inside = task.using(connection=connection).enqueue("Ann")
    assert (inside.created, inside.id) == (False, first.id)
    other = postgres_app.task(greet).using(connection=connection).enqueue("Bob")
    connection.commit()
    assert {job.id for job in jobs_of(postgres_app)} == {first.id, other.id}


def test_an_autocommit_connection_commits_at_once(postgres_app: Freehold) -> None:
    task = postgres_app.task(greet)
    with psycopg.connect(postgres_app.url, autocommit=True) as connection:
        task.using(connection=connection, unique_key="k").enqueue("Ann")
        assert len(jobs_of(postgres_app)) == 1
        with connection.transaction(force_rollback=True):
            task.using(connection=connection, unique_key="other").enqueue("Ann")
    assert len(jobs_of(postgres_app)) == 1


def test_a_coroutines_transaction(postgres_app: Freehold) -> None:
    task = postgres_app.task(agreet)

    async def produce() -> int:
        async with await psycopg.AsyncConnection.connect(postgres_app.url) as connection:
            inside = task.using(connection=connection)
            await inside.aenqueue("lost")
            await connection.rollback()
            handle = await inside.using(unique_key="k").aenqueue("kept")
            await connection.commit()
            return handle.id

    kept = asyncio.run(produce())
    assert [job.id for job in jobs_of(postgres_app)] == [kept]


def test_bad_input_leaves_the_transaction_usable(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    task = postgres_app.task(greet).using(connection=connection)
    with pytest.raises(BadInput):
        task.enqueue("\0")
    kept = task.enqueue("Ann")
    connection.commit()
    assert [job.id for job in jobs_of(postgres_app)] == [kept.id]


def test_the_wrong_kind_of_connection_is_refused(
    postgres_app: Freehold, connection: psycopg.Connection[Any]
) -> None:
    task = postgres_app.task(agreet)
    with pytest.raises(BadInput, match=r"connection=builtins\.str: enqueue takes an open"):
        task.using(connection="postgresql://").enqueue("Ann")

    async def mismatch() -> None:
        with pytest.raises(BadInput, match="call enqueue with it"):
            await task.using(connection=connection).aenqueue("Ann")
        async with await psycopg.AsyncConnection.connect(postgres_app.url) as other:
            with pytest.raises(BadInput, match="call aenqueue with it"):
                task.using(connection=other).enqueue("Ann")

    asyncio.run(mismatch())
    assert jobs_of(postgres_app) == ()


def test_the_embedded_store_refuses_a_callers_transaction(sqlite_app: Freehold) -> None:
    task = sqlite_app.task(agreet)
    connection = sqlite3.connect(":memory:")
    try:
        with pytest.raises(BadInput, match="use a PostgreSQL store, or enqueue after your commit"):
            task.using(connection=connection).enqueue("Ann")

        async def mismatch() -> None:
            with pytest.raises(BadInput, match="the embedded store accepts only"):
                await task.using(connection=connection).aenqueue("Ann")

        asyncio.run(mismatch())
    finally:
        connection.close()
    assert jobs_of(sqlite_app) == ()
