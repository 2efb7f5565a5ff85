"""`freehold.backlog()`, for autoscalers. It agrees with the depth that a manager reads."""

from __future__ import annotations

import psycopg
import pytest

from freehold.model.job import NewJob
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.stage_sql import STAGE_NAMES
from freehold.store.store import Store
from freehold.store.types import ClaimRequest, QueueDemand


def backlog(database: PostgresDatabase, queue: str | None = None) -> int:
    with psycopg.connect(database.url) as connection:
        row = connection.execute("select freehold.backlog(%s)", (queue,)).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def fill(queue: Store, name: str, count: int) -> None:
    queue.enqueue([NewJob(task="t", queue=name, args=b"{}") for _ in range(count)])


@pytest.mark.requirement("P12")
def test_it_counts_claimable_jobs_of_one_queue_or_of_all(
    database: PostgresDatabase, queue: Store
) -> None:
    assert backlog(database) == 0
    fill(queue, "mail", 3)
    fill(queue, "reports", 5)
    queue.claim(ClaimRequest(owner="w1", lease_seconds=30, demands=(QueueDemand("mail", 1),)))
    assert (backlog(database, "mail"), backlog(database, "reports")) == (2, 5)
    assert backlog(database, "empty") == 0
    assert backlog(database) == 7 == queue.depth(["mail", "reports"])


@pytest.mark.requirement("P12")
def test_it_counts_no_job_of_a_paused_queue(database: PostgresDatabase, queue: Store) -> None:
    fill(queue, "mail", 3)
    fill(queue, "reports", 5)
    queue.pause_queue("mail", "ann", None, None)
    assert (backlog(database, "mail"), backlog(database)) == (0, 5)
    queue.pause_queue("*", "ann", None, None)
    assert backlog(database) == 0
    queue.resume_queue("*")
    queue.resume_queue("mail")
    assert backlog(database) == 8


@pytest.mark.requirement("P12")
def test_it_stops_at_its_bound(database: PostgresDatabase) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute(
            "insert into freehold.job (id, created_at, priority, max_attempts, stage, queue, "
            "task, args) select nextval('freehold.job_id'), now(), 0, 1, "
            f"{STAGE_NAMES['ready']}, "
            "case when i % 2 = 0 then 'a' else 'b' end, 't', '{}' from generate_series(1, 24000) i"
        )
    assert (backlog(database, "a"), backlog(database)) == (10_000, 10_000)
