"""64 claimers: each job is claimed once, no claim waits for another, none starves."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from psycopg import Connection

from freehold.model.job import Attempt, NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.state import Stage
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, QueueDemand
from tests.concurrency import run_concurrently
from tests.store_postgres.conftest import Connect

CLAIMERS = 64
JOBS = 20_000
BATCH = 10


def claim_request(owner: str, count: int = BATCH, queue: str = "default") -> ClaimRequest:
    return ClaimRequest(owner=owner, lease_seconds=600.0, demands=(QueueDemand(queue, count),))


@pytest.mark.requirement("S0.2", "S0.11", "S1.4", "S3.4")
def test_64_claimers_claim_20_000_jobs_once_each_and_none_starves(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    ids = {each.id for each in queue.enqueue([NewJob(task="t")] * JOBS)}

    def claimer(owner: str) -> Callable[[], list[Attempt]]:
        connection = connect()
        connection.autocommit = True
        mine = Store(database.caller_session(connection))
        return lambda: claim_all(mine, owner)

    shares = run_concurrently([claimer(f"w{i}") for i in range(CLAIMERS)])

    taken = Counter(attempt.job_id for share in shares for attempt in share)
    assert set(taken) == ids
    assert set(taken.values()) == {1}
    assert min(len(share) for share in shares) >= BATCH, [len(share) for share in shares]
    tokens = [attempt.token for share in shares for attempt in share]
    assert len(set(tokens)) >= JOBS // BATCH, "every claim statement has a token of its own"


def claim_all(store: Store, owner: str) -> list[Attempt]:
    mine: list[Attempt] = []
    while found := store.claim(claim_request(owner)):
        mine += found
    return mine


class Open:
    """A transaction that never ends, and a claimer that must not wait for it."""

    def __init__(self, database: PostgresDatabase, connect: Connect) -> None:
        self.connection = connect()
        self.inside = Store(database.caller_session(self.connection))
        other = connect()
        other.autocommit = True
        # A wide ceiling: the open transaction never ends, so any wait for it ends here.
        other.execute("set lock_timeout = '5s'")
        self.other = Store(database.caller_session(other))


@pytest.fixture
def open_transaction(database: PostgresDatabase, connect: Connect) -> Open:
    return Open(database, connect)


@pytest.mark.requirement("S0.11", "S1.4")
def test_a_claim_never_waits_for_a_claim_that_is_not_committed(
    queue: Store, open_transaction: Open
) -> None:
    ids = [each.id for each in queue.enqueue([NewJob(task="t")] * 30)]
    first = open_transaction.inside.claim(claim_request("frozen"))
    second = open_transaction.other.claim(claim_request("quick"))
    assert [attempt.job_id for attempt in first] == ids[:10]
    assert [attempt.job_id for attempt in second] == ids[10:20]
    open_transaction.connection.rollback()
    third = open_transaction.other.claim(claim_request("quick"))
    assert [attempt.job_id for attempt in third] == ids[:10]


@pytest.mark.requirement("S1.6")
def test_a_plain_claim_takes_no_advisory_lock(queue: Store, open_transaction: Open) -> None:
    queue.enqueue([NewJob(task="t")] * 5 + [NewJob(task="t", target="lane", priority=-1)])
    assert len(open_transaction.inside.claim(claim_request("frozen", 5))) == 5
    assert advisory_locks(open_transaction.connection) == 0
    # The same query does find the lock that a claim of a lane takes.
    assert len(open_transaction.inside.claim(claim_request("frozen", 5))) == 1
    assert advisory_locks(open_transaction.connection) == 1


def advisory_locks(connection: Connection[Any]) -> int:
    row = connection.execute(
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.requirement("S1.4", "S4.3")
def test_a_claim_does_not_wait_for_a_lane_that_is_being_claimed(
    queue: Store, open_transaction: Open
) -> None:
    queue.enqueue([NewJob(task="t", target="lane")])
    assert len(open_transaction.inside.claim(claim_request("frozen"))) == 1
    behind = queue.enqueue([NewJob(task="t", target="lane"), NewJob(task="t")])
    claimed = open_transaction.other.claim(claim_request("quick"))
    assert [attempt.job_id for attempt in claimed] == [behind[1].id]


@pytest.mark.requirement("S1.4", "S4.3")
@pytest.mark.parametrize("verb", ["succeed", "retry", "renew", "mark_running", "cancel"])
def test_a_claim_does_not_wait_for_a_lane_whose_holder_is_being_changed(
    queue: Store, open_transaction: Open, verb: str
) -> None:
    queue.enqueue([NewJob(task="t", target="lane")])
    holder = queue.claim(claim_request("owner"))[0]
    change(open_transaction.inside, holder, verb)
    behind = queue.enqueue([NewJob(task="t", target="lane"), NewJob(task="t")])
    claimed = open_transaction.other.claim(claim_request("quick"))
    assert [attempt.job_id for attempt in claimed] == [behind[1].id]


def change(inside: Store, holder: Attempt, verb: str) -> None:
    key = LeaseKey(holder.job_id, holder.token)
    match verb:
        case "succeed":
            end(inside, holder, OutcomeKind.SUCCESS)
        case "retry":
            end(inside, holder, OutcomeKind.ERROR)
        case "renew":
            assert not inside.renew("owner", [key], 60.0).lost
        case "mark_running":
            assert not inside.mark_running("owner", [key])
        case "cancel":
            end(inside, holder, OutcomeKind.CANCEL)


def end(inside: Store, holder: Attempt, kind: OutcomeKind) -> None:
    result = inside.finish(holder.owner, [AttemptEnd(holder, Outcome(kind=kind))])
    assert holder.job_id in result.decisions


@pytest.mark.requirement("S4.3")
def test_the_first_job_of_a_lane_stays_ready_while_another_claimer_examines_the_lane(
    database: PostgresDatabase, queue: Store, connect: Connect
) -> None:
    """As a follower of itself it would never be promoted."""
    job_id = queue.enqueue([NewJob(task="t", target="lane")])[0].id
    other = connect()
    other.execute(
        "select pg_advisory_xact_lock(hashtextextended('lane', %s))",
        (zlib.crc32(database.schema.encode()),),
    )
    assert queue.claim(claim_request("quick")) == []
    assert queue.read([job_id])[job_id].stage is Stage.READY
    other.rollback()
    assert [attempt.job_id for attempt in queue.claim(claim_request("quick"))] == [job_id]
