"""Queues share all workers by weight; no queue starves, and no slot stays unused."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from freehold.model.limit import Limit
from tests.testing.virtual_app import VirtualApp, task_of_a_second
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually

WEIGHTS = {"five": 5.0, "three": 3.0, "one": 1.0}


@pytest.mark.requirement("S3.6")
@pytest.mark.either_store
def test_saturated_queues_share_two_processes_by_weight(fleet: Fleet) -> None:
    queue_of: dict[int, str] = {}
    for queue, count in (("five", 1500), ("three", 1000), ("one", 500)):
        fleet.app._client.store.set_weight(queue, WEIGHTS[queue])
        # Long enough that little is claimed ahead, so that shares are counted, not batches.
        jobs = [fleet_app.sleeper.using(queue=queue).prepare(0.02) for _ in range(count)]
        queue_of |= {handle.id: queue for handle in fleet.app.enqueue_many(jobs)}
    arguments = [argument for queue in WEIGHTS for argument in ("--queue", queue)]
    arguments += ["--concurrency", "8"]
    workers = [fleet.start(*arguments, lease=30.0) for _ in range(2)]
    eventually(lambda: len(fleet.record.lines(what="start")) >= 1800)
    assert {worker.drain() for worker in workers} == {0}
    starts = sorted(fleet.record.lines(what="start"), key=lambda line: line.at)[:1800]
    counts = Counter(queue_of[line.job] for line in starts)
    assert counts["five"] == pytest.approx(1000, rel=0.1)
    assert counts["three"] == pytest.approx(600, rel=0.1)
    assert counts["one"] == pytest.approx(200, rel=0.1)
    assert len({line.pid for line in starts}) == 2


def enqueue(virtual: VirtualApp, task: Any, queue: str, weight: float, count: int) -> None:
    virtual.app._client.store.set_weight(queue, weight)
    for _ in range(count):
        task.using(queue=queue).enqueue(queue)


@pytest.mark.requirement("S3.6")
def test_a_queue_of_weight_one_is_served_within_a_bounded_number_of_claims(
    virtual: VirtualApp,
) -> None:
    """One slot and long jobs: each claim brings one job, so starts are claims."""
    log: list[str] = []
    task = task_of_a_second(virtual, log)

    async def scenario() -> None:
        for queue, weight in WEIGHTS.items():
            enqueue(virtual, task, queue, weight, 100)
        async with virtual.working(
            queues=tuple(WEIGHTS), concurrency=1, shutdown_grace_seconds=5.0
        ):
            await virtual.until(lambda: len(log) >= 90, 200)

    virtual.run(scenario())
    turns = [at for at, queue in enumerate(log[:90]) if queue == "one"]
    assert len(turns) == 10
    assert turns[0] <= 9
    assert max(after - before for before, after in pairwise(turns)) <= 9 + 2


@pytest.mark.requirement("S3.6")
def test_an_idle_queues_share_goes_to_the_others_and_comes_back_to_it(virtual: VirtualApp) -> None:
    log: list[str] = []
    task = task_of_a_second(virtual, log)

    async def scenario() -> None:
        enqueue(virtual, task, "three", 3.0, 300)
        enqueue(virtual, task, "one", 1.0, 300)
        enqueue(virtual, task, "idle", 96.0, 0)
        settings: dict[str, Any] = {"queues": ("three", "one", "idle"), "concurrency": 4}
        async with virtual.working(**settings, shutdown_grace_seconds=5.0):
            took = await virtual.until(lambda: len(log) >= 200, 100)
            assert took < 200 / 4 + 3  # four at a time, a second each: no slot was kept free
            alone = Counter(log[:200])
            enqueue(virtual, task, "idle", 96.0, 40)
            await virtual.until(lambda: log.count("idle") == 40, 30)
        assert alone["three"] == pytest.approx(150, rel=0.1)
        assert alone["one"] == pytest.approx(50, rel=0.1)

    virtual.run(scenario())


@pytest.mark.requirement("S3.6", "P8")
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_limited_queue_gets_its_share_beside_one_of_many_short_jobs(
    virtual: VirtualApp, weight: float
) -> None:
    """Limited jobs are never claimed ahead, and jobs claimed ahead always fill the slots."""
    log: list[str] = []

    @virtual.app.task(name="short")
    async def short(queue: str) -> None:
        log.append(queue)
        await asyncio.sleep(0.01)

    async def scenario() -> None:
        virtual.app._client.store.set_queue_limit("limited", Limit(1000))
        enqueue(virtual, short, "limited", weight, 1500)
        enqueue(virtual, short, "flood", 1.0, 3000)
        async with virtual.working(
            queues=("limited", "flood"), concurrency=10, shutdown_grace_seconds=5.0
        ):
            await virtual.until(lambda: len(log) >= 1200, 60)
        counts = Counter(log[200:1200])
        assert counts["limited"] == pytest.approx(1000 * weight / (weight + 1), rel=0.1)

    virtual.run(scenario())


@pytest.mark.requirement("S0.14", "P8")
def test_jobs_with_a_limited_key_keep_their_place_among_many_short_jobs(
    virtual: VirtualApp,
) -> None:
    log: list[str] = []

    @virtual.app.task(name="short")
    async def short(kind: str) -> None:
        log.append(kind)
        await asyncio.sleep(0.01)

    async def scenario() -> None:
        virtual.app._client.store.set_key_limit("smtp", Limit(1000))
        for _ in range(500):
            short.enqueue("free")
        for _ in range(50):
            short.using(limit_key="smtp").enqueue("keyed")
        for _ in range(2000):
            short.enqueue("free")
        async with virtual.working(concurrency=10, shutdown_grace_seconds=5.0):
            await virtual.until(lambda: len(log) >= 1200, 60)
        assert log[:1000].count("keyed") == 50

    virtual.run(scenario())
