"""LISTEN through PgBouncer: workers poll in transaction mode, and are notified in session mode."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import psycopg
import pytest

from freehold.store.postgres.listener import listen
from freehold.store.postgres.shared_listener import listen_to_all
from tests.chaos.pooler import Pooler
from tests.conftest import POSTGRES_VARIABLE

pytestmark = pytest.mark.needs_pgbouncer

WAIT_SECONDS = 120.0
_CHANNEL = "freehold_listening_through_pgbouncer"


@pytest.fixture
def pooler(request: pytest.FixtureRequest) -> Iterator[Pooler]:
    """With PgBouncer's own order: the connection that was used last is used next, so that one
    client alone always gets the same, as if it were connected directly."""
    pooler = Pooler(os.environ[POSTGRES_VARIABLE], pool_mode=request.param, round_robin=False)
    pooler.start()
    yield pooler
    pooler.close()


async def first_report(conninfo: str, *, shared: bool) -> str | None:
    """What the listener reports first: "" if it is notified, None if it is not."""
    reports: asyncio.Queue[str | None] = asyncio.Queue()
    if shared:
        listening = listen_to_all(
            conninfo,
            f"{_CHANNEL}_t",
            lambda: {_CHANNEL: "acme"},
            lambda _, payload: reports.put_nowait(payload),
        )
    else:
        listening = listen(conninfo, _CHANNEL, reports.put_nowait)
    task = asyncio.create_task(listening)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            return await reports.get()
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("shared", [False, True], ids=["one", "of-tenants"])
@pytest.mark.parametrize(
    ("pooler", "expected"), [("transaction", None), ("session", "")], indirect=["pooler"]
)
def test_a_listener_knows_whether_the_pooler_delivers(
    pooler: Pooler, expected: str | None, shared: bool
) -> None:
    assert asyncio.run(first_report(pooler.url, shared=shared)) == expected


@pytest.mark.parametrize("pooler", ["transaction"], indirect=True)
def test_no_connection_of_the_pooler_keeps_listening_to_the_workers_channel(pooler: Pooler) -> None:
    """PgBouncer would log a warning for each notification that it cannot deliver."""
    asyncio.run(first_report(pooler.url, shared=False))
    with psycopg.connect(pooler.url, autocommit=True) as connection:
        rows = connection.execute("select pg_listening_channels()").fetchall()
    assert (_CHANNEL,) not in rows


def test_a_direct_connection_is_notified() -> None:
    assert asyncio.run(first_report(os.environ[POSTGRES_VARIABLE], shared=False)) == ""
