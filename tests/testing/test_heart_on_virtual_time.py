"""How often a worker says that it lives: rarely idle, often busy, at once when it goes."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from freehold.model.worker_info import WorkerState
from freehold.worker.heartbeat import BUSY_HEARTBEAT_SECONDS, IDLE_HEARTBEAT_SECONDS
from tests.testing.rig import Rig


@pytest.mark.requirement("S0.15")
def test_an_idle_worker_beats_six_times_a_minute(rig: Rig) -> None:
    async def scene() -> list[float]:
        async with rig.working():
            await asyncio.sleep(595)
            beats: list[float] = rig.database.times("beat")
            return beats

    beats = rig.play(scene())
    assert len(beats) == 60
    assert all(
        after - before == pytest.approx(IDLE_HEARTBEAT_SECONDS) for before, after in pairwise(beats)
    )


@pytest.mark.requirement("S0.6")
def test_a_busy_worker_beats_every_two_seconds_and_with_its_renewals(rig: Rig) -> None:
    @rig.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(60)

    async def scene() -> tuple[list[float], list[float]]:
        long.enqueue()
        async with rig.working(lease_seconds=30.0):
            await asyncio.sleep(55)
            return rig.database.times("beat"), rig.database.times("renew")

    beats, renewals = rig.play(scene())
    assert len(renewals) == 5
    assert set(renewals) <= set(beats)
    gaps = [after - before for before, after in pairwise(beats)]
    assert max(gaps) <= BUSY_HEARTBEAT_SECONDS + 0.1
    assert len(beats) == 1 + 55 // BUSY_HEARTBEAT_SECONDS


def test_a_drain_is_told_at_once_and_the_end_takes_the_word_back(rig: Rig) -> None:
    @rig.app.task(name="long")
    async def long() -> None:
        await asyncio.sleep(60)

    async def scene() -> list[WorkerState]:
        long.enqueue()
        async with rig.working() as worker:
            await asyncio.sleep(5.5)
            before = await rig.app.aoperate.workers()
            worker.drain()
            await asyncio.sleep(0.1)
            after = await rig.app.aoperate.workers()
            assert [each.running for each in after] == [1]
        return [each.state for each in (*before, *after)]

    assert rig.play(scene()) == [WorkerState.WORKING, WorkerState.DRAINING]
    assert rig.app.operate.workers() == []


def test_a_store_that_does_not_hear_is_not_shouted_at(rig: Rig) -> None:
    rig.database.refused.add("beat")

    async def scene() -> None:
        async with rig.working():
            await asyncio.sleep(60)

    rig.play(scene())
    assert 25 <= len(rig.database.times("beat")) <= 31
