"""What goes over the wire, and what is made of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from freehold.errors import StoreReadOnly
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import NewJob
from freehold.store.postgres import pipeline
from freehold.store.postgres.connections import Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.pipeline import PooledConnection, PreparedStatement
from freehold.store.store import Store

ONE = PreparedStatement(b"select 1", list)
TWO = PreparedStatement(b"select 2", list)
DIES = PreparedStatement(b"select pg_terminate_backend(pg_backend_pid())", list)


@pytest.fixture
def connections(database: PostgresDatabase) -> Iterator[Connections]:
    connections = Connections(database.url)
    yield connections
    connections.close()


def test_a_connection_that_breaks_behind_the_answer_takes_nothing_back(
    connections: Connections,
) -> None:
    with connections.pool.connection(writes=True) as line:
        assert line.wait(line.wire.talk([ONE], then=DIES)) == [[(1,)]]
        assert line.closed
    with connections.pool.connection(writes=True) as line:
        assert line.wait(line.wire.talk([ONE], then=TWO)) == [[(1,)]]


def test_a_name_stands_for_the_same_statement_on_every_connection(
    connections: Connections,
) -> None:
    """Behind a pooler, somebody else may have prepared there."""

    def prepared(*order: PreparedStatement) -> dict[str, str]:
        with connections.pool.connection(writes=False) as line:
            for said in order * 2:
                line.wait(line.wire.say(said.sql, []))
            rows = line.execute("select statement, name from pg_prepared_statements").fetchall()
            line.close()
        return dict(rows)

    names = prepared(ONE, TWO)
    assert len(set(names.values())) == len((ONE, TWO))
    assert names == prepared(TWO, ONE)


def test_a_statement_is_prepared_when_it_is_first_said(connections: Connections) -> None:
    with connections.pool.connection(writes=False) as line:
        assert line.wait(line.wire.talk([ONE, ONE], then=TWO)) == [[(1,)], [(1,)]]
        rows = line.execute("select statement from pg_prepared_statements").fetchall()
        assert sorted(rows) == [("select 1",), ("select 2",)]


def test_what_failed_is_prepared_or_not_as_the_server_has_it(connections: Connections) -> None:
    """What was ready stays so when its transaction fails; what could not be made ready is new the
    next time; and so is what was not looked at."""
    missing, fails = (
        PreparedStatement(b"select x from later", list),
        PreparedStatement(b"select 1 / 0", list),
    )
    with connections.pool.connection(writes=True) as line:
        for batch in ([ONE, fails, TWO], [missing, ONE], [fails, missing]):
            with pytest.raises(psycopg.Error):
                line.wait(line.wire.talk(batch))
        line.execute("create temporary table later as select 7 as x")
        assert line.wait(line.wire.talk([ONE, missing, TWO])) == [[(1,)], [(7,)], [(2,)]]
        assert line.wait(line.wire.say(missing.sql, [])) == [[(7,)]]


def test_what_cannot_be_said_costs_no_connection(connections: Connections) -> None:
    sql = b"select $1::text"
    with connections.pool.connection(writes=False) as line:
        for _ in range(2):
            with pytest.raises(psycopg.DataError, match="character"):
                line.wait(line.wire.say(sql, ["a\0b"]))
            assert line.wire.is_quiet
        assert line.wait(line.wire.say(sql, ["ab"])) == [[("ab",)]]


def test_what_is_in_use_stays_prepared_however_much_comes_and_goes(
    connections: Connections,
) -> None:
    since = "select prepare_time from pg_prepared_statements where statement = 'select 1'"
    with connections.pool.connection(writes=False) as line:
        for _ in range(2):
            line.wait(line.wire.say(ONE.sql, []))
        before = line.execute(since).fetchall()
        for number in range(1000):
            other = PreparedStatement(b"select %d + 3" % number, list)
            for said in (ONE, other, other) if number % 100 == 0 else (other,):
                line.wait(line.wire.say(said.sql, []))
        assert len(before) == 1
        assert line.execute(since).fetchall() == before
        first = "select from pg_prepared_statements where statement = 'select 0 + 3'"
        assert line.execute(first).fetchall() == []


def test_a_database_of_another_encoding_keeps_every_letter(database: PostgresDatabase) -> None:
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
def test_a_standby_is_told_as_one_and_left() -> None:
    """It refuses what reads an unlogged table before it sees that it would write."""
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


@pytest.mark.parametrize("meddling", ["deallocate", "prepare"])
def test_a_hint_that_was_forgotten_on_the_way_is_said_again(
    connections: Connections, meddling: str
) -> None:
    """A pooler may lead it to another server connection than the batch before it: one on which
    nothing is prepared, or one on which somebody else has prepared the same."""
    hint = PreparedStatement(b"insert into heard values (1)", list)
    with connections.pool.connection(writes=True) as line:
        line.execute("create temporary table heard (it integer)")
        if meddling == "deallocate":
            line.wait(line.wire.talk([ONE], then=hint))
            _behind_its_back(line, "deallocate {}")
        else:
            _behind_its_back(line, "prepare {} as select 3")
        before = line.execute("select count(*) from heard").fetchall()[0][0]
        for more in (1, 2):
            assert line.wait(line.wire.talk([ONE], then=hint)) == [[(1,)]]
            assert line.execute("select count(*) from heard").fetchall() == [(before + more,)]


def _behind_its_back(line: PooledConnection, statement: str) -> None:
    """In a block of its own, so that the client does not notice."""
    name = pipeline._name(b"insert into heard values (1)").decode()
    line.execute(f"do $$ begin execute '{statement.format(name)}'; end $$".encode())
