"""How often a worker sends heartbeats: seldom when idle, often when busy, at once in a drain."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from freehold.model.worker_info import WorkerState
from freehold.worker.heartbeat import BUSY_HEARTBEAT_SECONDS, IDLE_HEARTBEAT_SECONDS
from tests.testing.virtual_app import VirtualApp


@pytest.mark.requirement("S0.15")
def test_an_idle_worker_sends_six_heartbeats_a_minute(virtual: VirtualApp) -> None:
    async def scenario() -> list[float]:
        async with virtual.working():
            await asyncio.sleep(595)
            beats: list[float] = virtual.database.times("heartbeat")
            return beats

    beats = virtual.run(scenario())
    assert len(beats) == 60
    assert all(
        after - before == pytest.approx(IDLE_HEARTBEAT_SECONDS) for before, after in pairwise(beats)
    )


@pytest.mark.requirement("S0.6")
def test_a_busy_worker_sends_a_heartbeat_every_two_seconds_and_with_its_renewals(
    virtual: VirtualApp,
) -> None:
    @virtual.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(60)

    async def scenario() -> tuple[list[float], list[float]]:
        long.enqueue()
        async with virtual.working(lease_timeout_seconds=30.0):
            await asyncio.sleep(55)
            return virtual.database.times("heartbeat"), virtual.database.times("renew")

    beats, renewals = virtual.run(scenario())
    assert len(renewals) == 5
    assert set(renewals) <= set(beats)
    gaps = [after - before for before, after in pairwise(beats)]
    assert max(gaps) <= BUSY_HEARTBEAT_SECONDS + 0.1
    assert len(beats) == 1 + 55 // BUSY_HEARTBEAT_SECONDS


def test_a_drain_is_sent_at_once_and_the_end_removes_the_worker(virtual: VirtualApp) -> None:
    @virtual.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(60)

    async def scenario() -> list[WorkerState]:
        long.enqueue()
        async with virtual.working() as worker:
            await asyncio.sleep(5.5)
            before = await virtual.app.aoperator.workers()
            worker.drain()
            await asyncio.sleep(0.1)
            after = await virtual.app.aoperator.workers()
            assert [each.running for each in after] == [1]
        return [each.state for each in (*before, *after)]

    assert virtual.run(scenario()) == [WorkerState.WORKING, WorkerState.DRAINING]
    assert virtual.app.operator.workers() == []


def test_failed_heartbeats_are_repeated_ever_more_rarely(virtual: VirtualApp) -> None:
    virtual.database.refused.add("heartbeat")

    async def scenario() -> None:
        async with virtual.working():
            await asyncio.sleep(120)

    virtual.run(scenario())
    times = virtual.database.times("heartbeat")[:-1]  # the last one is that of the drain
    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= 0.75 * BUSY_HEARTBEAT_SECONDS
    assert 12 <= len(gaps) <= 40
    assert gaps[-1] > 3 * BUSY_HEARTBEAT_SECONDS
