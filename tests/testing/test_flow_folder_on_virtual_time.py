"""When a worker counts the ends of members of flows: a stream by few folds, the last at once."""

from __future__ import annotations

import asyncio
from typing import Any

from freehold.worker.flow_folder import PAUSE_SECONDS
from tests.testing.virtual_app import VirtualApp


def sleeper(virtual: VirtualApp) -> Any:
    @virtual.app.task(name="sleeper")
    async def sleeper(milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)

    return sleeper


def ends_and_folds(virtual: VirtualApp) -> tuple[list[float], list[float]]:
    """Without the folds of the first sweep."""
    ends = virtual.database.times("succeed_in_flow")
    return ends, [at for at in virtual.database.times("fold_ends") if at >= ends[0]]


def test_a_stream_of_ends_is_counted_by_few_folds_and_its_last_end_at_once(
    virtual: VirtualApp,
) -> None:
    task = sleeper(virtual)
    members = [task.prepare(milliseconds) for milliseconds in range(10, 61)]

    async def scenario() -> None:
        batch = await virtual.app.abatch(members)
        async with virtual.working(concurrency=len(members)):
            await virtual.until(lambda: batch.read().state == "succeeded", within=1)

    virtual.run(scenario())
    ends, folds = ends_and_folds(virtual)
    assert len(set(ends)) == len(members)
    assert (folds[0], folds[-1]) == (ends[0], ends[-1])
    assert len(set(folds)) <= 2 + (ends[-1] - ends[0]) / PAUSE_SECONDS


def test_an_end_is_counted_late_by_no_more_than_the_pause(virtual: VirtualApp) -> None:
    """Another job of the worker runs on."""
    task = sleeper(virtual)

    async def scenario() -> None:
        batch = await virtual.app.abatch([task.prepare(10), task.prepare(11)])
        await task.aenqueue(1000)
        async with virtual.working():
            await virtual.until(lambda: batch.read().state == "succeeded", within=0.5)

    virtual.run(scenario())
    ends, folds = ends_and_folds(virtual)
    assert ends[1] < folds[1] <= ends[1] + PAUSE_SECONDS + 0.001


def test_a_drain_counts_what_waits_for_the_pause(virtual: VirtualApp) -> None:
    task = sleeper(virtual)

    async def scenario() -> None:
        batch = await virtual.app.abatch([task.prepare(10), task.prepare(11)])
        await task.aenqueue(1000)
        async with virtual.working(shutdown_grace_seconds=0):
            await virtual.until(
                lambda: len(virtual.database.times("succeed_in_flow")) == 2, within=0.5
            )
            assert batch.read().state == "open"
        assert batch.read().state == "succeeded"

    virtual.run(scenario())
