"""With a million finished jobs no statement reads more than it needs.

Nor if the planner has no statistics, or those of another hour, or keeps a plan that was made when
the queue was empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql

from freehold.lab.devpostgres import DevPostgres
from freehold.store.postgres.database import PostgresDatabase
from tests.conftest import SERVER_SETTINGS
from tests.store_postgres import filling, flow_plans, plan_cases
from tests.store_postgres.explaining import Reading, explain
from tests.store_postgres.plan_cases import Case, Found, look

NOTHING = Found(leases=[], live=[], keys=[], leased_middle=0, attention_middle=0)
READING_DAYS = plan_cases.READING_DAYS | flow_plans.READING_DAYS


def cases(found: Found) -> dict[str, Case]:
    return plan_cases.cases(found) | {case.name: case for case in flow_plans.cases()}


CASES = cases(NOTHING)
EVERY = sorted(CASES)
#: A few pages are read faster in whole than through an index.
LARGE_BYTES = 256 * 1024
WITH_LASTING_PLANS = [name for name in EVERY if CASES[name].statement.name not in READING_DAYS]


@dataclass(frozen=True)
class Full:
    """The filled database, and a session that has kept its plans since it was empty."""

    database: PostgresDatabase
    connection: Connection[Any]
    kept: Connection[Any]
    kept_costs: dict[str, float]
    cases: dict[str, Case]
    large: frozenset[str]

    def check(self, name: str, reading: Reading) -> None:
        case = self.cases[name]
        assert not self.large.intersection(reading.whole_tables), reading.story()
        assert reading.rows_read <= case.rows_allowed, reading.story()
        assert reading.buffers <= case.buffers_allowed, reading.story()


@pytest.fixture(scope="module")
def full() -> Iterator[Full]:
    """On its own server: DDL of other tests sends invalidation messages to every session of a
    server, and a session that falls behind drops the plans that it should keep."""
    with DevPostgres(settings={**SERVER_SETTINGS, "autovacuum": "off"}) as server:
        database = PostgresDatabase(server.url)
        database.migrate()
        with psycopg.connect(server.url, autocommit=True) as first:
            flow_plans.lock(first)
        with (
            psycopg.connect(server.url, autocommit=True) as connection,
            psycopg.connect(server.url, autocommit=True) as kept,
        ):
            filling.rest_after_another_hour(connection)
            filling.add_days(connection)
            filling.add_bulk_operation(connection)
            costs = keep_plans(kept, database)
            filling.fill(connection)
            flow_plans.fill(connection)
            yield Full(
                database, connection, kept, costs, cases(look(connection)), large(connection)
            )
        database.close()


def keep_plans(connection: Connection[Any], database: PostgresDatabase) -> dict[str, float]:
    """As in a worker that has been idle for a while: its session has generic plans by now.

    Returns their estimated costs, by which a plan is recognized later.
    """
    connection.execute("set plan_cache_mode = force_generic_plan")
    costs = {}
    for name, case in cases(NOTHING).items():
        text, values = database._statements.with_values(case.statement)
        connection.execute(f'prepare "{name}" as '.encode() + text)
        costs[name] = explain(connection, call(name, values)).plan["Total Cost"]
    return costs


def large(connection: Connection[Any]) -> frozenset[str]:
    rows = connection.execute(
        "select relname from pg_class where relnamespace = 'freehold'::regnamespace "
        "and relkind = 'r' and pg_relation_size(oid) > %s",
        (LARGE_BYTES,),
    )
    return frozenset(row[0] for row in rows)


def call(name: str, values: list[Any]) -> sql.Composed:
    given = sql.SQL("({})").format(sql.SQL(", ").join(values)) if values else sql.SQL("")
    return sql.SQL("execute {}{}").format(sql.Identifier(name), given)


@pytest.fixture(scope="module", params=["of another hour", "forgotten", "fresh"])
def statistics(request: pytest.FixtureRequest, full: Full) -> str:
    """What the planner knows; the first is how the database was left by `full`."""
    knows: str = request.param
    if knows == "forgotten":
        filling.forget_statistics(full.connection)
    elif knows == "fresh":
        full.connection.execute("analyze")
    return knows


def test_statements_that_read_days_are_among_the_cases() -> None:
    """A renamed one would be left out of the list, and its new name not."""
    assert {case.statement.name for case in CASES.values()} >= READING_DAYS


# Before the other tests: analyzing throws kept plans away.
@pytest.mark.requirement("S1.7", "S1.1", "N13")
@pytest.mark.parametrize("name", WITH_LASTING_PLANS)
def test_a_plan_kept_from_the_empty_queue_survives_the_flood(full: Full, name: str) -> None:
    _, values = full.database._statements.with_values(full.cases[name].statement)
    reading = explain(full.kept, call(name, values))
    assert reading.plan["Total Cost"] == full.kept_costs[name], "the session has planned again"
    full.check(name, reading)


@pytest.mark.requirement("S1.7", "S1.1", "N13")
@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.usefixtures("statistics")
def test_no_statement_reads_a_whole_table(full: Full, name: str, mode: str) -> None:
    full.connection.execute(f"set plan_cache_mode = {mode}".encode())
    full.check(name, measured(full, full.connection, name))


@pytest.mark.requirement("S1.7")
@pytest.mark.parametrize("name", EVERY)
def test_the_catalogs_are_not_counted(full: Full, name: str) -> None:
    """A new session has empty caches, as an old one has after too many invalidation messages."""
    with psycopg.connect(full.database.url, autocommit=True) as new:
        full.check(name, measured(full, new, name))


def measured(full: Full, connection: Connection[Any], name: str) -> Reading:
    text, values = full.database._statements.with_values(full.cases[name].statement)
    connection.execute(b"prepare looked_at as " + text)
    try:
        return explain(connection, call("looked_at", values))
    finally:
        connection.execute("deallocate looked_at")


@pytest.mark.requirement("S1.7")
@pytest.mark.parametrize("text", ["{scan}", "select pg_temp.scan()"], ids=["plain", "function"])
@pytest.mark.parametrize("kind", ["table", "index"])
def test_the_checker_finds_a_statement_that_reads_too_much(
    full: Full, kind: str, text: str
) -> None:
    scan = "select count(args::text) from freehold.job where id > 0"
    connection = full.connection
    with connection.transaction(force_rollback=True):
        for off in ("seqscan",) if kind == "index" else ("indexscan", "bitmapscan"):
            connection.execute(f"set local enable_{off} = off".encode())
        connection.execute(
            f"create function pg_temp.scan() returns bigint language sql as '{scan}'".encode()
        )
        reading = explain(connection, sql.SQL(text.replace("{scan}", scan)).format())
    assert ("job" in reading.whole_tables) == (kind == "table"), reading.story()
    with pytest.raises(AssertionError, match="buffers"):
        full.check("claim 1", reading)
