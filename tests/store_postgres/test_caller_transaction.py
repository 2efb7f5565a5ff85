"""Jobs in the caller's transaction: committed with it or not at all, never aborting it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, Connection

from freehold.errors import BadInput
from freehold.model.flow import FlowKind, NewFlow, NewNode
from freehold.model.job import Enqueued, NewJob
from freehold.model.waiting import Unique, waiting_of
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore, Store
from freehold.store.types import ClaimRequest, QueueDemand
from tests.concurrency import wait_until
from tests.store_postgres.conftest import Connect
from tests.stores import is_found

KEYED = [
    NewJob(task="t", unique_key="k"),
    NewJob(task="t", idempotency_key="k"),
    NewJob(task="t", unique_key="k", idempotency_key="k"),
]
keyed = pytest.mark.parametrize("job", KEYED, ids=["unique", "idempotent", "both"])


def inside(database: PostgresDatabase, connection: Connection[Any]) -> Store:
    return Store(database.caller_session(connection))


def count(queue: Store) -> int:
    return queue.counts().ready


@pytest.mark.requirement("S0.18")
def test_a_rollback_leaves_no_job_and_a_commit_exactly_one(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    connection = connect()
    inside(database, connection).enqueue([NewJob(task="t")])
    assert count(queue) == 0, "not visible before the commit"
    connection.rollback()
    assert count(queue) == 0
    inside(database, connection).enqueue([NewJob(task="t")])
    connection.commit()
    assert count(queue) == 1


@pytest.mark.requirement("S0.18")
@keyed
def test_a_rolled_back_key_was_never_used(
    database: PostgresDatabase, queue: Store, connect: Connect, job: NewJob
) -> None:
    connection = connect()
    assert inside(database, connection).enqueue([job])[0].created
    connection.rollback()
    assert queue.enqueue([job])[0].created
    assert count(queue) == 1


@pytest.mark.requirement("S0.18", "P9")
@keyed
def test_a_key_that_is_taken_does_not_abort_the_callers_transaction(
    database: PostgresDatabase, queue: Store, connect: Connect, job: NewJob
) -> None:
    first = queue.enqueue([job])[0]
    connection = connect()
    connection.execute("create temporary table orders (id integer) on commit drop")
    connection.execute("insert into orders values (1)")
    assert is_found(inside(database, connection).enqueue([job])[0], first)
    connection.execute("insert into orders values (2)")
    assert connection.execute("select count(*) from orders").fetchone() == (2,)
    connection.commit()
    assert count(queue) == 1


@pytest.mark.requirement("S0.18", "P9")
@pytest.mark.parametrize("first_commits", [True, False], ids=["commits", "rolls back"])
@keyed
def test_the_second_of_two_callers_with_one_key_waits_and_gets_the_right_result(
    database: PostgresDatabase,
    queue: Store,
    connect: Connect,
    job: NewJob,
    first_commits: bool,
) -> None:
    first, second = connect(), connect()
    mine = inside(database, first).enqueue([job])[0]
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(inside(database, second).enqueue, [job])
        wait_until(lambda: waits_for_a_lock(queue, database, result), "the second one waits")
        first.commit() if first_commits else first.rollback()
        theirs = result.result()[0]
    second.commit()
    assert mine.created
    assert theirs.created is not first_commits
    assert (theirs.id == mine.id) is first_commits
    assert count(queue) == 1
    assert is_found(queue.enqueue([job])[0], theirs)


@pytest.mark.requirement("N4", "S0.18")
def test_a_replacement_happens_if_and_only_if_the_transaction_commits(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    option = Unique("k", "start", ("args",))
    old, new = (
        NewJob(task="t", args=args, waiting=waiting_of("t", option)) for args in (b"1", b"2")
    )
    first = queue.enqueue([old])[0]
    connection = connect()
    for end, expected in ((connection.rollback, "1"), (connection.commit, "2")):
        assert inside(database, connection).enqueue([new])[0].replaced
        request = ClaimRequest(owner="w", lease_seconds=60, demands=(QueueDemand("default", 1),))
        assert queue.claim(request) == [], "a claim does not wait for the caller"
        end()
        assert queue.read([first.id])[first.id].args == expected


def waits_for_a_lock(
    queue: Store, database: PostgresDatabase, result: Future[list[Enqueued]]
) -> bool:
    assert not result.done(), result.result()
    with psycopg.connect(database.url, autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and wait_event_type = 'Lock'"
        ).fetchone()
    return row is not None and row[0] > 0


@pytest.mark.requirement("S0.18")
def test_a_connection_in_autocommit_commits_at_once(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    connection = connect()
    connection.autocommit = True
    job = NewJob(task="t", idempotency_key="k")
    assert inside(database, connection).enqueue([job])[0].created
    assert not inside(database, connection).enqueue([job])[0].created
    assert count(queue) == 1
    with connection.transaction(force_rollback=True):
        assert inside(database, connection).enqueue([NewJob(task="t")])[0].created
    assert count(queue) == 1


@pytest.mark.requirement("S0.18")
@pytest.mark.parametrize("commits", [True, False])
def test_an_asyncio_connection_commits_or_rolls_back_the_job(
    database: PostgresDatabase, queue: Store, commits: bool
) -> None:
    async def enqueue() -> list[bool]:
        job = NewJob(task="t", unique_key="k", idempotency_key="k")
        async with await AsyncConnection.connect(database.url) as connection:
            store = AsyncStore(database.async_caller_session(connection))
            results = [(await store.enqueue([job]))[0].created for _ in range(2)]
            await (connection.commit() if commits else connection.rollback())
        return results

    assert asyncio.run(enqueue()) == [True, False]
    assert count(queue) == int(commits)


@pytest.mark.requirement("S0.18")
def test_a_connection_of_the_wrong_kind_is_refused_with_the_right_call(
    database: PostgresDatabase, connect: Connect
) -> None:
    refused: list[tuple[Callable[[Any], Any], Any, str]] = [
        (database.caller_session, "not one", "connection=builtins.str: enqueue takes an open"),
        (database.async_caller_session, connect(), "call enqueue with it"),
    ]
    for call, connection, text in refused:
        with pytest.raises(BadInput, match=text):
            call(connection)


@pytest.mark.requirement("N12", "S0.18")
def test_a_workflow_exists_if_and_only_if_the_callers_transaction_commits(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    """With its key, its nodes, its group and its edges; and it does not abort the transaction."""
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w", key="k")
    nodes = [
        NewNode(number=1, name="a", job=NewJob(task="a")),
        NewNode(number=2, name="b", jobs=(NewJob(task="b"),) * 2, sources=((1, ""),)),
        NewNode(number=3, name="c", job=NewJob(task="c"), sources=((2, ""),)),
    ]
    connection = connect()
    tables = ("flow", "flow_node", "flow_edge", "flow_range", "job")

    def rows() -> dict[str, int]:
        with psycopg.connect(database.url) as other:
            return {table: _count(other, table) for table in tables}

    assert inside(database, connection).create_workflow(new, nodes, within=True).created
    connection.rollback()
    assert rows() == dict.fromkeys(tables, 0)
    stored = inside(database, connection).create_workflow(new, nodes, within=True)
    again = inside(database, connection).create_workflow(new, nodes, within=True)
    assert (stored.created, again.created, again.id) == (True, False, stored.id)
    assert rows() == dict.fromkeys(tables, 0), "not visible before the commit"
    connection.commit()
    assert rows() == {"flow": 2, "flow_node": 3, "flow_edge": 2, "flow_range": 2, "job": 4}
    assert count(queue) == 1
    assert not queue.create_workflow(new, nodes, within=False).created


def _count(connection: Connection[Any], table: str) -> int:
    (found,) = connection.execute(f"select count(*) from freehold.{table}".encode()).fetchall()
    return int(found[0])
