"""Acknowledged writes survive a crash of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from freehold.errors import StoreError
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.state import State
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand
from tests.concurrency import wait_until

WRITERS = 4


@pytest.fixture
def server() -> Iterator[DevPostgres]:
    """With the default settings of PostgreSQL: none trades durability for speed."""
    with DevPostgres() as server:
        yield server


@pytest.mark.requirement("S2.1", "S2.11")
def test_a_crash_of_the_server_loses_no_acknowledged_write(server: DevPostgres) -> None:
    database = PostgresDatabase(server.url)
    database.migrate()
    queue = Store(database.session())
    queue.enqueue([NewJob(task="t")] * 20)
    request = ClaimRequest(owner="w", lease_seconds=600.0, demands=(QueueDemand("default", 10),))
    leased = queue.claim(request)
    done, held = leased[0], leased[1:]
    success = Outcome(kind=OutcomeKind.SUCCESS, result=b'{"x":1}')
    queue.finish("w", [AttemptEnd(done, success)])

    ids = enqueue_until_it_crashes(queue, server)
    server.start()

    jobs = queue.read([*ids, *(attempt.job_id for attempt in leased)])
    assert {job_id for job_id in ids if job_id not in jobs} == set()
    assert jobs[done.job_id].state is State.SUCCEEDED
    for attempt in held:
        lease = jobs[attempt.job_id].lease
        assert lease is not None
        assert (lease.owner, lease.token) == ("w", attempt.token)
    later = queue.claim(request)
    assert min(each.token for each in later) > max(each.token for each in leased)
    assert not {each.job_id for each in later} & {each.job_id for each in held}
    database.close()


def enqueue_until_it_crashes(queue: Store, server: DevPostgres) -> list[int]:
    """Returns the ids of all acknowledged jobs."""
    acknowledged: list[int] = []

    def enqueue() -> None:
        try:
            while True:
                acknowledged.extend(each.id for each in queue.enqueue([NewJob(task="t")] * 3))
        except StoreError:
            return

    writers = [threading.Thread(target=enqueue) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    wait_until(lambda: len(acknowledged) > 300, "some are acknowledged")
    server.stop("immediate")
    for writer in writers:
        writer.join()
    return acknowledged
