"""Suspended jobs wait for free: a sweep and a claim read no more than without them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql

from freehold.store.postgres.database import PostgresDatabase
from freehold.store.stage_sql import STAGE_NAMES
from freehold.store.statements import Statement
from tests.sizes import sized
from tests.store_postgres.explaining import explain

SLEEPING = sized("SLEEPING_JOBS", short=20_000, long=100_000)
#: An index that grows has more levels, of which each probe reads one page.
LEVELS = 2
PROBES = 3

_JOBS = f"""
insert into freehold.job (id, created_at, run_at, stage, priority, attempt, max_attempts, queue,
    task, args, policy, waits_for)
select nextval('freehold.job_id'), now() - interval '60 days', now() + i * interval '1 minute',
    {STAGE_NAMES["scheduled"]}, 0, 0, 5, 'default', 't', '{{}}', '{{"steps": true}}',
    case i % 2 when 0 then 'sleep/cooling off' else 'signal/shipped:' || i end
from generate_series(1, {SLEEPING}) i
"""
_STEPS = """
insert into freehold.step (job_id, name, number, token, at, kind, until, hidden)
select id, 'cooling off', 1, 1, created_at, 'sleep', run_at, false from freehold.job
"""
SWEEP = [
    Statement("sweep_check", {"tasks": ["t"]}),
    Statement("make_ready", {"limit": 500}),
    Statement("late_jobs", {"limit": 500}),
    Statement("expired", {"limit": 500}),
    Statement("undelivered_signals", {"limit": 500}),
    Statement("retention_is_due", {"history_days": 90.0}),
]
SCANNED = 100
_EARLY = datetime(2000, 1, 1, tzinfo=UTC)
SCAN = Statement(
    "drop_old_steps",
    {
        "day": datetime.now(UTC) - timedelta(days=30),
        "scanned_to": _EARLY,
        "at": _EARLY,
        "job_id": 0,
        "window": SCANNED,
    },
)


@pytest.fixture
def connection(database: PostgresDatabase) -> Iterator[Connection[Any]]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        yield connection
        connection.execute("truncate freehold.job, freehold.step")


@pytest.mark.requirement("N9")
def test_a_sweep_costs_the_same_with_and_without_sleeping_jobs(
    database: PostgresDatabase, connection: Connection[Any]
) -> None:
    def buffers() -> dict[str, int]:
        return {each.name: _buffers(database, connection, each) for each in SWEEP}

    # Rows of other tests, and those that migrations made and deleted.
    connection.execute("vacuum freehold.job, freehold.step, freehold.signal")
    none = buffers()
    connection.execute(_JOBS.encode())
    connection.execute(_STEPS)
    many = buffers()
    print(f"buffers without and with {SLEEPING} sleeping jobs: {none} {many}")
    for name, count in many.items():
        assert count <= none[name] + LEVELS * PROBES, name
    # Once a day each of their steps is looked at, and only its live job.
    assert _buffers(database, connection, SCAN) <= 8 * SCANNED


def _buffers(database: PostgresDatabase, connection: Connection[Any], each: Statement) -> int:
    text, values = database._statements.with_values(each)
    connection.execute(b"prepare looked_at as " + text)
    given = sql.SQL("({})").format(sql.SQL(", ").join(values)) if values else sql.SQL("")
    try:
        return explain(connection, sql.SQL("execute looked_at{}").format(given)).buffers
    finally:
        connection.execute("deallocate looked_at")
