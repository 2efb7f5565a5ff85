"""With synchronous replication, an answer that a job exists, or has ended, waits for a standby.

A canceled enqueue ends the server's wait for its standby: the job is visible, and no standby has
it. If the primary dies then, the job is lost, so no caller may have got its id. The end of a job
becomes visible in the same way, and a new primary may run the job again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from freehold.errors import StoreUnavailable
from freehold.lab.devpostgres import DevPostgres
from freehold.model.job import NewJob
from freehold.model.operator_actions import ActionStatus, OperatorVerb
from freehold.model.state import State
from freehold.model.waiting import Waiting
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import AsyncStore
from tests.chaos.standby import start_standby
from tests.frozen_server import frozen

WAIT_SECONDS = 120.0
_WAITING = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[DevPostgres, DevPostgres]]:
    with DevPostgres() as primary:
        with closing(PostgresDatabase(primary.url)) as database:
            database.migrate()
        standby = start_standby(primary, {})
        with closing(standby):
            yield primary, standby


@pytest.mark.parametrize(
    "job",
    [
        NewJob(task="charge", unique_key="order-7"),
        NewJob(task="charge", idempotency_key="request-7"),
        NewJob(task="charge", waiting=Waiting(key="order-7")),
    ],
    ids=["unique_key", "idempotency_key", "waiting_key"],
)
def test_a_key_is_answered_only_when_a_standby_has_its_job(
    servers: tuple[DevPostgres, DevPostgres], job: NewJob
) -> None:
    primary, standby = servers

    async def scenario() -> None:
        database = PostgresDatabase(primary.url)
        store = AsyncStore(database.async_session())
        await store.queues()
        with frozen(standby):
            canceled = asyncio.create_task(store.enqueue([job]))
            await asyncio.to_thread(_wait_for_a_waiting_commit, primary)
            canceled.cancel()
            await asyncio.wait([canceled])
            assert canceled.cancelled()
            assert (await store.queues())[0].ready >= 1  # visible, and no standby has it
            for connection in database._connections.pool_of_loop()._idle:
                connection.answer_seconds = 1.0
            with pytest.raises(StoreUnavailable, match="did not answer within"):
                await store.enqueue([job])
        (found,) = await store.enqueue([job])
        assert not found.created
        await database.aclose()

    asyncio.run(scenario())


def test_a_job_is_answered_to_have_ended_only_when_a_standby_has_its_end(
    servers: tuple[DevPostgres, DevPostgres],
) -> None:
    primary, standby = servers

    async def scenario() -> None:
        database = PostgresDatabase(primary.url)
        store = AsyncStore(database.async_session())
        (job,) = await store.enqueue([NewJob(task="charge")])
        with frozen(standby):
            canceled = asyncio.create_task(
                store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
            )
            await asyncio.to_thread(_wait_for_a_waiting_commit, primary)
            canceled.cancel()
            await asyncio.wait([canceled])
            (seen,) = (await store.read([job.id])).values()
            assert seen.state is State.CANCELED  # visible, and no standby has it
            for connection in database._connections.pool_of_loop()._idle:
                connection.answer_seconds = 1.0
            with pytest.raises(StoreUnavailable, match="did not answer within"):
                await store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
        (answer,) = await store.operate(OperatorVerb.CANCEL, [job.id], "test", None)
        assert answer.status is ActionStatus.ALREADY
        await database.aclose()

    asyncio.run(scenario())


def _wait_for_a_waiting_commit(primary: DevPostgres) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    with psycopg.connect(primary.url, autocommit=True) as admin:
        while admin.execute(_WAITING).fetchone() == (0,):
            assert time.monotonic() < deadline, "no commit waits for the standby"
            time.sleep(0.01)
