"""Steps through PgBouncer in transaction mode: the fence is in the statement, not in a session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict

from freehold import Context, LeaseLost
from tests.chaos.pooler import Pooler
from tests.conftest import POSTGRES_VARIABLE
from tests.worker.durable_handlers import the_old_owner_of_a_step_loses
from tests.worker.local_worker import AT_ONCE, LocalWorker, entry, kinds, opened, put

pytestmark = [
    pytest.mark.needs_pgbouncer,
    pytest.mark.requirement("N8"),
    pytest.mark.usefixtures("slow_renewer"),
]


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    pooler = Pooler(os.environ[POSTGRES_VARIABLE])
    pooler.start()
    yield pooler
    pooler.close()


@pytest.fixture
def pooled_worker(pooler: Pooler, postgres_store_url: str) -> Iterator[LocalWorker]:
    folder, _, port = pooler.socket.rpartition("/.s.PGSQL.")
    database = conninfo_to_dict(postgres_store_url)["dbname"]
    yield from opened(f"postgresql:///{database}?host={folder}&port={port}&user=postgres")


@kinds
def test_of_two_owners_that_write_the_same_step_the_old_one_loses(
    pooled_worker: LocalWorker, kind: str
) -> None:
    the_old_owner_of_a_step_loses(pooled_worker, kind)


def test_rows_and_step_of_an_old_owner_are_nowhere(pooled_worker: LocalWorker) -> None:
    seen: list[str] = []

    async def coroutine(ctx: Context) -> None:
        try:
            async with ctx.transaction(step="book") as connection:
                await put(connection, entry("mine"))
                pooled_worker.steal(ctx.job.job_id)
        except LeaseLost:
            seen.append("LeaseLost")

    job_id = pooled_worker.add(coroutine, retry=AT_ONCE)
    pooled_worker.run()
    assert seen == ["LeaseLost"]
    assert pooled_worker.ledger() == []
    assert pooled_worker.app._client.store.read_steps(job_id) == []
