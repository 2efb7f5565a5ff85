"""One job for each tick, with many sweepers, kills, and a server that crashes at the tick."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import psycopg
import pytest

from freehold.lab.devpostgres import DevPostgres
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from tests.concurrency import wait_until
from tests.conftest import SERVER_SETTINGS
from tests.sizes import sized
from tests.stores import _TEST_CLOCK
from tests.sweeping import TICK_SECONDS, definitions, sweeping, ticks_of

SCHEDULES = sized("SCHEDULES", short=60, long=500)
TICKS = sized("TICKS", short=5, long=20)
SWEEPERS = sized("SWEEPERS", short=6, long=20)
KILLS_EACH = sized("KILLS_EACH", short=2, long=5)
#: A crash of the server must lose nothing: neither a job nor the time of the test's clock.
DURABLE = {**SERVER_SETTINGS, "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
MANY_SCHEDULES = sized("MANY_SCHEDULES", short=1_000, long=10_000)


def rows(server: DevPostgres, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def prepare(server: DevPostgres, count: int) -> None:
    database = PostgresDatabase(server.url)
    database.migrate()
    rows(server, _TEST_CLOCK.replace("{schema}", "freehold"))
    rows(server, "insert into freehold.test_clock values ('2026-03-29 00:00:00.5+00')")
    Store(database.session()).declare_schedules("test", definitions(count))
    database.close()


def tick(server: DevPostgres) -> None:
    rows(server, f"update freehold.test_clock set at = at + interval '{TICK_SECONDS} s'")


def nothing_is_due(server: DevPostgres) -> bool:
    return not rows(
        server, "select 1 from freehold.schedule where next_at <= freehold.clock() limit 1"
    )


@pytest.mark.requirement("N1")
def test_every_tick_makes_one_job_whatever_is_killed() -> None:
    with DevPostgres(settings=DURABLE) as server:
        prepare(server, SCHEDULES)
        with sweeping(
            SWEEPERS, lambda: Store(PostgresDatabase(server.url, pool_size=1).session())
        ) as sweepers:
            for number in range(TICKS):
                tick(server)
                if number % 4 == 2:  # in the middle of it
                    server.stop("immediate")
                    server.start()
                sweepers.kill(KILLS_EACH)
                wait_until(lambda: nothing_is_due(server), "all ticks are fired")
            assert sweepers.killed == TICKS * KILLS_EACH
        found = rows(server, "select tags::text, policy::text from freehold.job")
        made = ticks_of(found)
        assert set(made.values()) == {1}, "a tick made two jobs"
        assert set(Counter(name for name, _ in made).values()) == {TICKS}, "a tick made no job"
        assert len(made) == SCHEDULES * TICKS
        (counted,) = rows(
            server, "select sum(fired)::int, sum(skipped + missed)::int from freehold.schedule"
        )
        assert counted == (SCHEDULES * TICKS, 0)


@pytest.mark.requirement("N1")
def test_many_schedules_that_are_due_at_once_are_all_fired() -> None:
    """The time is printed, and not compared: `scripts/test --long <this file> -k many -n 0 -s`."""
    with DevPostgres(settings=SERVER_SETTINGS) as server:
        prepare(server, MANY_SCHEDULES)
        with sweeping(2, lambda: Store(PostgresDatabase(server.url, pool_size=1).session())):
            tick(server)
            began = time.monotonic()
            wait_until(lambda: nothing_is_due(server), "all ticks are fired")
            seconds = time.monotonic() - began
        assert rows(server, "select count(*) from freehold.job") == [(MANY_SCHEDULES,)]
    print(f"{MANY_SCHEDULES} schedules due at once were fired in {seconds:.2f} s")
