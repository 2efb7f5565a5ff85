"""One follower reads the events of a store for all listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from freehold import event_follower
from freehold.event_follower import EventFollower
from freehold.model.history import Event
from freehold.operator import AsyncOperator
from tests.http.api_client import TIMEOUT_SECONDS, ApiClient

T = TypeVar("T")


class CountedReads:
    """A real store, with the number of its reads."""

    def __init__(self, operator: AsyncOperator) -> None:
        self._operator = operator
        self.reads = 0
        self.readers: set[object] = set()
        self.first_read = asyncio.Event()

    async def newest_event(self) -> int:
        return await self._operator.newest_event()

    async def events_after(self, event_id: int, limit: int) -> list[Event]:
        self.reads += 1
        self.readers.add(asyncio.current_task())
        self.first_read.set()
        return await self._operator.events_after(event_id, limit)


def run(client: ApiClient, work: Coroutine[Any, Any, T]) -> T:
    return client.run(asyncio.wait_for(work, TIMEOUT_SECONDS))


async def received(follower: EventFollower, position: int, count: int) -> list[int]:
    """The ids of the next events after a position."""
    found: list[int] = []
    while len(found) < count:
        events = await follower.after(position, 2)
        found += [event.id for event in events]
        position = found[-1] if found else position
        if not events:
            await follower.wait(position, 1.0)
    return found


def test_twenty_listeners_cost_as_many_reads_as_one(client: ApiClient) -> None:
    jobs = [client.add() for _ in range(3)]

    async def listen() -> tuple[list[list[int]], set[object]]:
        source = CountedReads(client.app.aoperator)
        follower = EventFollower(source, 0.05)
        with follower.listening():
            await source.first_read.wait()
            position = await source.newest_event()
            listeners = [asyncio.create_task(received(follower, position, 3)) for _ in range(20)]
            for job_id in jobs:
                await client.app.aoperator.pause(job_id, by="ann")
            found = await asyncio.gather(*listeners)
        return found, source.readers

    found, readers = run(client, listen())
    assert len(readers) == 1  # the follower's own task reads, and no listener
    assert len(found) == 20
    assert all(each == sorted(each) and each == found[0] for each in found)


def test_a_listener_that_is_behind_reads_the_store_until_it_has_caught_up(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_follower, "_RECENT", 3)
    for _ in range(4):
        client.app.operator.pause(client.add(), by="ann")

    async def listen() -> list[int]:
        follower = EventFollower(client.app.aoperator, 0.0)
        with follower.listening():
            early = asyncio.create_task(received(follower, 0, 10))
            for job_id in jobs:
                await client.app.aoperator.pause(job_id, by="ann")
            return await early

    jobs = [client.add() for _ in range(6)]
    found = run(client, listen())
    assert found == sorted(set(found))
    assert len(found) == 10


def test_the_follower_reads_nothing_after_its_last_listener_has_left(
    sqlite_client: ApiClient,
) -> None:
    async def listen() -> None:
        source = CountedReads(sqlite_client.app.aoperator)
        follower = EventFollower(source, 0.0)
        with follower.listening():
            with follower.listening():
                pass
            await source.first_read.wait()
            polling = follower._polling
        assert polling is not None
        await asyncio.wait({polling})
        assert polling.cancelled()

    run(sqlite_client, listen())
