"""The load: claimable jobs of open queues, and the leases of the manager's own workers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from freehold.manager.store_snapshot import StoreSnapshot, take_snapshot
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.scaling import Load
from freehold.model.worker_info import LiveWorker
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import AsyncStore, Store
from freehold.store.types import QueueInfo

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def queue(name: str, ready: int, leased: int = 0, age: float = 0.0, **fields: Any) -> QueueInfo:
    return QueueInfo(
        name,
        ready,
        leased,
        0,
        NOW - timedelta(seconds=age) if ready else None,
        fields.pop("paused_at", None),
        None,
        None,
        None,
        **fields,
    )


def worker(owner: str, running: int, waiting: int) -> LiveWorker:
    return LiveWorker(
        owner=owner,
        host="h",
        pid=1,
        concurrency=10,
        queues=(),
        tasks=(),
        version="1",
        running=running,
        waiting=waiting,
        started_at=NOW,
        seen_at=NOW,
        expires_at=NOW,
    )


def snapshot(queues: list[QueueInfo], *workers: LiveWorker) -> StoreSnapshot:
    return StoreSnapshot({q.name: q for q in queues}, {w.owner: w for w in workers}, NOW)


@pytest.mark.requirement("S2.9")
def test_ready_jobs_of_the_managers_queues_and_the_oldest_of_them_count() -> None:
    found = snapshot(
        [queue("a", 3, age=5.0), queue("b", 4, age=9.0), queue("others", 99, age=60.0)]
    )
    assert found.load(["a", "b", "empty"], []) == Load(ready=7, oldest_seconds=9.0)


@pytest.mark.requirement("S2.9")
def test_leases_of_the_managers_workers_count_and_of_no_other() -> None:
    found = snapshot([], worker("mine", 2, 3), worker("elsewhere", 50, 50))
    assert found.load(["a"], ["mine", "just started"]) == Load(ready=0, leased=5)


@pytest.mark.requirement("P12")
def test_a_paused_queue_needs_no_worker() -> None:
    found = snapshot([queue("a", 5, age=5.0, paused_at=NOW)])
    assert found.load(["a"], []) == Load(ready=0)


@pytest.mark.requirement("P12")
@pytest.mark.parametrize(("leased", "ready"), [(0, 4), (3, 1), (4, 0), (9, 0)])
def test_jobs_beyond_a_limit_need_no_worker(leased: int, ready: int) -> None:
    found = snapshot([queue("a", 100, leased, limit=Limit(max_leases=4))])
    assert found.load(["a"], []).ready == ready


@pytest.mark.requirement("P12")
def test_a_pause_of_all_queues_needs_no_worker() -> None:
    database = SqliteDatabase(None)
    store = Store(database.session())

    def ready() -> int:
        found = asyncio.run(take_snapshot(AsyncStore(database.async_session())))
        return found.load(["default"], []).ready

    store.enqueue([NewJob(task="t")])
    assert ready() == 1
    store.pause_queue("*", "ann", None, None)
    assert ready() == 0
    database.close()
