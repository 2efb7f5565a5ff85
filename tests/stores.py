"""Both stores behind one interface for tests, with a clock that only the test moves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg

from freehold.clock import VirtualClock
from freehold.model.job import Attempt, Enqueued, Job, NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.database import SessionOptions
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.sqlfiles import with_stages
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import AsyncStore, Store
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, QueueDemand
from freehold.store.verbs.claim import ClaimCursors

LEASE_SECONDS = 30.0
TABLES = (
    "job",
    "history",
    "event",
    "job_log",
    "step",
    "step_scan",
    "signal",
    "idempotency",
    "queue",
    "key_limit",
    "rate_usage",
    "lane",
    "worker",
    "tenant",
    "schedule",
    "audit",
    "bulk_operation",
    "bulk_chunk",
    "bulk_step",
    "retention_rule",
    "throttle",
    "web_session",
    "flow",
    "flow_range",
    "flow_callback",
    "flow_node",
    "flow_edge",
    "flow_end",
)

#: The one override of the store's clock, for tests only (requirement P11).
_TEST_CLOCK = """
create table if not exists {schema}.test_clock (at timestamptz);
create or replace function {schema}.clock() returns timestamptz language sql volatile
    as 'select coalesce((select at from {schema}.test_clock), clock_timestamp())';
"""


class StoreUnderTest:
    """A store, its clock, and shortcuts for the most frequent steps of tests."""

    def __init__(self, kind: str, database: SqliteDatabase | PostgresDatabase) -> None:
        self.kind = kind
        self.database = database
        self.store = Store(database.session())
        self.awaited = AsyncStore(database.async_session())

    def advance(self, seconds: float) -> None:
        raise NotImplementedError

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Reads or writes the tables directly; `{s}` stands for the schema's prefix."""
        raise NotImplementedError

    def now(self) -> datetime:
        return self.store.now()

    def add(self, **fields: Any) -> int:
        """Enqueues one job, of task "t" by default. Returns its id."""
        return self.store.enqueue([NewJob(**{"task": "t", **fields})])[0].id

    def claim(
        self,
        owner: str = "w1",
        count: int = 100,
        queue: str = "default",
        cursors: ClaimCursors | None = None,
        **fields: Any,
    ) -> list[Attempt]:
        fields = {"lease_seconds": LEASE_SECONDS} | fields
        request = ClaimRequest(owner=owner, demands=(QueueDemand(queue, count),), **fields)
        return self.store.claim(request, cursors)

    def claim_one(self, owner: str = "w1", **fields: Any) -> Attempt:
        attempts = self.claim(owner, 1, **fields)
        assert len(attempts) == 1
        return attempts[0]

    def end(self, attempt: Attempt, kind: OutcomeKind, **fields: Any) -> bool:
        """Finishes one attempt. Returns whether its lease was valid."""
        outcome = Outcome(kind=kind, **fields)
        result = self.store.finish(attempt.owner, [AttemptEnd(attempt, outcome)])
        assert (attempt.job_id in result.decisions) != (attempt.job_id in result.lost)
        return attempt.job_id in result.decisions

    def job(self, job_id: int) -> Job:
        return self.store.read([job_id])[job_id]

    def state(self, job_id: int) -> str:
        return str(self.job(job_id).state)

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """The content of all tables, to show that a refused write changed nothing."""
        return {table: self.sql(f"select * from {{s}}{table} order by 1") for table in TABLES}


def is_found(result: Enqueued, first: Enqueued) -> bool:
    """Whether this call returned the job of the first one."""
    return (result.id, result.created) == (first.id, False)


def key_of(attempt: Attempt) -> LeaseKey:
    return LeaseKey(attempt.job_id, attempt.token)


class SqliteUnderTest(StoreUnderTest):
    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._sqlite = SqliteDatabase(None, self._clock)
        super().__init__("sqlite", self._sqlite)

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with self._sqlite._engine.transaction() as connection:
            return connection.execute(with_stages(statement).replace("{s}", "")).fetchall()


class PostgresUnderTest(StoreUnderTest):
    def __init__(self, url: str, schema: str = "freehold", *, pipelined: bool = True) -> None:
        self._postgres = PostgresDatabase(
            url, schema, options=SessionOptions("pipelined" if pipelined else "plain")
        )
        self._postgres.migrate()
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(_TEST_CLOCK.replace("{schema}", schema).encode())
        self.url = url
        self.schema = schema
        self.reset()
        super().__init__("postgres", self._postgres)

    def reset(self) -> None:
        """Empties the store."""
        # Not truncate, which creates new files for every index of every day.
        tables = (
            *TABLES,
            "test_clock",
        )
        sequences = (
            "job_id",
            "lease_token",
            "event_id",
            "audit_id",
            "bulk_operation_id",
            "flow_id",
        )
        start = VirtualClock().micros // 1_000_000
        statements = [
            *(f"delete from {self.schema}.{table}" for table in tables),
            *(f"select setval('{self.schema}.{name}', 1, false)" for name in sequences),
            f"insert into {self.schema}.test_clock values (to_timestamp({start}))",
        ]
        self._connection.execute(";".join(statements).encode())

    def advance(self, seconds: float) -> None:
        self._connection.execute(
            f"update {self.schema}.test_clock set at = at + make_interval(secs => %s)".encode(),
            (seconds,),
        )

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        text = with_stages(statement).replace("{s}", f"{self.schema}.")
        cursor = self._connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._connection.close()
        self._postgres.close()


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """A new database on the server, dropped at the end."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        address, mark, options = server_url.partition("?")
        yield f"{address.rpartition('/')[0]}/{name}{mark}{options}"
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
