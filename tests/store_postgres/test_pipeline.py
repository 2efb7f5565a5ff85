"""Statements that a Pipeline sends, and its results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreError, StoreReadOnly
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import NewJob
from freehold.store.postgres import pipeline
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pipeline import SqlAndValues
from freehold.store.postgres.pool import PooledConnection
from freehold.store.store import AsyncStore, Store

ONE: SqlAndValues = (b"select 1", [])
TWO: SqlAndValues = (b"select 2", [])
TERMINATE: SqlAndValues = (b"select pg_terminate_backend(pg_backend_pid())", [])


@pytest.fixture
def connections(database: PostgresDatabase) -> Iterator[Connections]:
    connections = Connections(database.url)
    yield connections
    connections.close()


def test_a_connection_that_breaks_after_the_results_does_not_lose_them(
    connections: Connections,
) -> None:
    with connections.pool.connection(writes=True) as connection:
        assert connection.wait(connection.group_pipeline.exchange([ONE], then=TERMINATE)) == [
            [(1,)]
        ]
        assert connection.closed
    with connections.pool.connection(writes=True) as connection:
        assert connection.wait(connection.group_pipeline.exchange([ONE], then=TWO)) == [[(1,)]]


def test_a_statement_is_prepared_under_the_same_name_on_every_connection(
    connections: Connections,
) -> None:
    """Behind a pooler, another client may have prepared on the same server connection."""

    def prepared(*order: SqlAndValues) -> dict[str, str]:
        with connections.pool.connection(writes=False) as connection:
            for statement in order * 2:
                connection.wait(connection.group_pipeline.exchange_one(*statement))
            rows = connection.execute(
                "select statement, name from pg_prepared_statements"
            ).fetchall()
            connection.close()
        return dict(rows)

    names = prepared(ONE, TWO)
    assert len(set(names.values())) == len((ONE, TWO))
    assert names == prepared(TWO, ONE)


def test_a_statement_is_prepared_when_it_is_first_sent(connections: Connections) -> None:
    with connections.pool.connection(writes=False) as connection:
        assert connection.wait(connection.group_pipeline.exchange([ONE, ONE], then=TWO)) == [
            [(1,)],
            [(1,)],
        ]
        rows = connection.execute("select statement from pg_prepared_statements").fetchall()
        assert sorted(rows) == [("select 1",), ("select 2",)]


def test_after_an_error_the_list_of_prepared_statements_agrees_with_the_server(
    connections: Connections,
) -> None:
    """A prepared statement stays prepared when its transaction fails. One that could not be
    prepared, or was skipped after an error, is prepared again the next time."""
    missing, fails = (
        (b"select x from later", list[Any]()),
        (b"select 1 / 0", list[Any]()),
    )
    with connections.pool.connection(writes=True) as connection:
        for group in ([ONE, fails, TWO], [missing, ONE], [fails, missing]):
            with pytest.raises(psycopg.Error):
                connection.wait(connection.group_pipeline.exchange(group))
        connection.execute("create temporary table later as select 7 as x")
        assert connection.wait(connection.group_pipeline.exchange([ONE, missing, TWO])) == [
            [(1,)],
            [(7,)],
            [(2,)],
        ]
        assert connection.wait(connection.group_pipeline.exchange_one(*missing)) == [[(7,)]]


def test_a_value_that_cannot_be_encoded_keeps_the_connection_usable(
    connections: Connections,
) -> None:
    sql = b"select $1::text"
    with connections.pool.connection(writes=False) as connection:
        for _ in range(2):
            with pytest.raises(psycopg.DataError, match="character"):
                connection.wait(connection.group_pipeline.exchange_one(sql, ["a\0b"]))
            assert connection.group_pipeline.is_idle
        assert connection.wait(connection.group_pipeline.exchange_one(sql, ["ab"])) == [[("ab",)]]


def test_statements_in_use_stay_prepared_while_many_others_are_replaced(
    connections: Connections,
) -> None:
    since = "select prepare_time from pg_prepared_statements where statement = 'select 1'"
    with connections.pool.connection(writes=False) as connection:
        for _ in range(2):
            connection.wait(connection.group_pipeline.exchange_one(*ONE))
        before = connection.execute(since).fetchall()
        for number in range(1000):
            other = (b"select %d + 3" % number, list[Any]())
            for statement in (ONE, other, other) if number % 100 == 0 else (other,):
                connection.wait(connection.group_pipeline.exchange_one(*statement))
        assert len(before) == 1
        assert connection.execute(since).fetchall() == before
        first = "select from pg_prepared_statements where statement = 'select 0 + 3'"
        assert connection.execute(first).fetchall() == []


def test_a_database_with_another_encoding_keeps_every_character(database: PostgresDatabase) -> None:
    with psycopg.connect(database.url, autocommit=True) as admin:
        admin.execute(
            "create database in_latin encoding 'LATIN1' template template0 "
            "lc_collate 'C' lc_ctype 'C'"
        )
        url = psycopg.conninfo.make_conninfo(database.url, dbname="in_latin")
        latin = PostgresDatabase(url)
        latin.migrate()
        store = Store(latin.session())
        (job,) = store.enqueue([NewJob(task="t", args='["ä"]'.encode())])
        with psycopg.connect(url) as other:
            row: Any = other.execute("select args::text from freehold.job").fetchone()
        assert row == ('["ä"]',)
        assert store.read([job.id])[job.id].args == '["ä"]'
        latin.close()
        admin.execute("drop database in_latin")


@pytest.mark.requirement("S2.11")
def test_a_standby_is_reported_as_read_only_and_its_connection_closed() -> None:
    """It refuses a statement on an unlogged table before it notices the write."""
    with DevPostgres(settings={"fsync": "off"}) as server:
        database = PostgresDatabase(server.url)
        database.migrate()
        server.stop("fast")
        (server.data / "standby.signal").touch()
        server.start()
        store = Store(database.session())
        for job in (NewJob(task="t"), NewJob(task="t", delay_seconds=5.0)):
            with pytest.raises(StoreReadOnly, match="standby"):
                store.enqueue([job])
        database.close()


@pytest.mark.parametrize("interference", ["deallocate", "prepare"])
def test_a_notification_that_a_pooler_lost_is_sent_again(
    connections: Connections, interference: str
) -> None:
    """A pooler may route it to another server connection than the group before it: one on which
    nothing is prepared, or one on which another client has prepared the same statement."""
    notification = (b"insert into notified values (1)", list[Any]())
    with connections.pool.connection(writes=True) as connection:
        connection.execute("create temporary table notified (it integer)")
        if interference == "deallocate":
            connection.wait(connection.group_pipeline.exchange([ONE], then=notification))
            _execute_unnoticed(connection, "deallocate {}")
        else:
            _execute_unnoticed(connection, "prepare {} as select 3")
        before = connection.execute("select count(*) from notified").fetchall()[0][0]
        for more in (1, 2):
            assert connection.wait(
                connection.group_pipeline.exchange([ONE], then=notification)
            ) == [[(1,)]]
            assert connection.execute("select count(*) from notified").fetchall() == [
                (before + more,)
            ]


def _execute_unnoticed(connection: PooledConnection, statement: str) -> None:
    """In a DO block, so that the client does not notice."""
    name = pipeline._name(b"insert into notified values (1)").decode()
    connection.execute(f"do $$ begin execute '{statement.format(name)}'; end $$".encode())


@pytest.fixture
def refusing_commits(database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """Each insert of a job succeeds, and the commit after it fails."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "create function freehold.refuse() returns trigger language plpgsql as "
            "$$ begin raise check_violation using message = 'refused at the commit'; end $$"
        )
        connection.execute(
            "create constraint trigger refuse after insert on freehold.job "
            "deferrable initially deferred for each row execute function freehold.refuse()"
        )
        yield database
        connection.execute("drop trigger refuse on freehold.job")
        connection.execute("drop function freehold.refuse")


@pytest.mark.requirement("S0.6")
@pytest.mark.parametrize("count", [1, 2])
def test_a_job_whose_commit_fails_is_not_acknowledged(
    refusing_commits: PostgresDatabase, count: int
) -> None:
    """The server sends the rows of a statement before it commits. The second call sends a statement
    that is prepared, as most are."""
    store = Store(refusing_commits.session())
    for _ in range(2):
        with pytest.raises(StoreError, match="refused at the commit"):
            store.enqueue([NewJob(task="t")] * count)
    assert not store.has_live_jobs()


@pytest.mark.requirement("S0.6")
@pytest.mark.parametrize("count", [1, 2])
def test_an_awaited_job_whose_commit_fails_is_not_acknowledged(
    refusing_commits: PostgresDatabase, count: int
) -> None:
    async def enqueue() -> None:
        store = AsyncStore(refusing_commits.async_session())
        try:
            for _ in range(2):
                with pytest.raises(StoreError, match="refused at the commit"):
                    await store.enqueue([NewJob(task="t")] * count)
            assert not await store.has_live_jobs()
        finally:
            await refusing_commits.aclose()

    asyncio.run(enqueue())
