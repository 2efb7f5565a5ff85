"""Workers that live for seconds keep `history_days`, and prepare the next days."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from freehold.errors import StoreUnavailable
from freehold.model.audit import Author
from freehold.model.bulk import BulkVerb
from freehold.model.job import NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd, JobFilter
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.worker.config import WorkerSettings
from freehold.worker.sweeper import BATCH, Sweeper
from freehold.worker.wakeups import Wakeups
from tests.stores import StoreUnderTest

DAY_SECONDS = 86400.0
KEEP_DAYS = 3.0


def short_worker(store: StoreUnderTest) -> None:
    """The first sweep of a worker, which ends after it."""

    async def live() -> None:
        settings, wakeups = WorkerSettings(history_days=KEEP_DAYS), Wakeups()
        sweeper = Sweeper(
            store.awaited, Telemetry(), settings, Registry(), None, wakeups, lambda: 1.0
        )
        swept = asyncio.create_task(sweeper.run())
        while not wakeups.has_swept:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        swept.cancel()
        if store.kind == "postgres":  # a database in memory would end with its connection
            await store.database.aclose()

    asyncio.run(live())


def finish(store: StoreUnderTest, count: int, key: str | None = None) -> list[int]:
    jobs = [
        NewJob(task="t", idempotency_key=None if key is None else f"{key}{n}") for n in range(count)
    ]
    store.store.enqueue(jobs)
    attempts = store.claim(count=count)
    ended = [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS)) for attempt in attempts]
    assert store.store.finish("w1", ended).lost == ()
    return [attempt.job_id for attempt in attempts]


def test_short_workers_keep_history_days(store: StoreUnderTest) -> None:
    finished: list[int] = []
    for _ in range(12):
        short_worker(store)
        finished += finish(store, 2)
        store.advance(DAY_SECONDS)
    short_worker(store)
    kept = [row[0] for row in store.sql("select id from {s}history order by id")]
    assert kept == finished[-2 * int(KEEP_DAYS) :]
    if store.kind == "postgres":
        assert store.sql("select count(*) from {s}history_rest") == [(0,)]


def test_a_short_worker_deletes_more_than_one_batch(store: StoreUnderTest) -> None:
    finish(store, 2 * BATCH + 1, key="k")
    store.advance(DAY_SECONDS)
    short_worker(store)
    assert store.sql("select count(*) from {s}idempotency") == [(0,)]


def test_a_worker_with_nothing_to_delete_only_looks(store: StoreUnderTest) -> None:
    while store.store.apply_retention(KEEP_DAYS, 100):
        pass
    finish(store, 1)
    assert not store.store.retention_is_due(KEEP_DAYS)
    store.advance((KEEP_DAYS + 2) * DAY_SECONDS)
    assert store.store.retention_is_due(KEEP_DAYS)


def test_a_bulk_step_that_fails_does_not_hold_up_retention(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(store, 3, key="k")
    store.advance(DAY_SECONDS)
    store.store.start_bulk(BulkVerb.RETRY, JobFilter(), None, Author("ann", "cli"))

    async def unavailable(*_: Any) -> bool:
        raise StoreUnavailable("the unique keys kept changing")

    async def sweep() -> None:
        monkeypatch.setattr(store.awaited, "carry_out_bulk_step", unavailable)
        settings = WorkerSettings(history_days=KEEP_DAYS)
        parts = (Registry(), None, Wakeups(), lambda: 1.0)
        await Sweeper(store.awaited, Telemetry(), settings, *parts).run_once()
        if store.kind == "postgres":
            await store.database.aclose()

    asyncio.run(sweep())
    assert store.sql("select count(*) from {s}idempotency") == [(0,)]
