"""Reads the new events of a store once for all listeners, however many there are.

The follower polls while there is a listener, and keeps the newest events in memory. A listener has
a position of its own, the id of its last event. One that is behind what is in memory reads the
store itself until it has caught up, so a slow listener loses nothing and holds up no other.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Protocol

from freehold.errors import StoreError
from freehold.model.history import Event

#: Events in memory.
_RECENT = 1000
#: Events of one read.
_BATCH = 200
_id = attrgetter("id")


class EventSource(Protocol):
    async def newest_event(self) -> int: ...

    async def events_after(self, event_id: int, limit: int) -> list[Event]: ...


class EventFollower:
    """For the listeners of one event loop."""

    def __init__(self, source: EventSource, poll_seconds: float) -> None:
        self._source = source
        self._poll_seconds = poll_seconds
        self._listeners = 0
        self._polling: asyncio.Task[None] | None = None
        self._forget()

    def _forget(self) -> None:
        self._recent: list[Event] = []
        #: Events with larger ids are in memory, up to the newest that was read. None: no read yet.
        self._floor: int | None = None
        self._newest = 0
        self._arrived = asyncio.Event()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The follower polls until the last listener has left."""
        self._listeners += 1
        if self._polling is None or self._polling.done():
            self._forget()
            self._polling = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._polling.cancel()
                self._polling = None

    async def after(self, position: int, limit: int = _BATCH) -> list[Event]:
        """The next events of a listener, in order; none if there are none yet."""
        if self._is_behind(position):
            return await self._source.events_after(position, limit)
        first = bisect_right(self._recent, position, key=_id)
        return self._recent[first : first + limit]

    async def wait(self, position: int, seconds: float) -> None:
        """Until there are events after this position, or so many seconds have passed."""
        if self._polling is not None and self._polling.done():
            self._polling.result()  # an error that no later read would mend
        if self._is_behind(position):  # behind an event that has not been committed yet
            await asyncio.sleep(self._poll_seconds)
        elif position >= self._newest:
            arrived = self._arrived
            try:
                async with asyncio.timeout(seconds):
                    await arrived.wait()
            except TimeoutError:
                pass

    def _is_behind(self, position: int) -> bool:
        return self._floor is None or position < self._floor

    async def _poll(self) -> None:
        while True:
            found = 0
            try:
                if self._floor is None:
                    self._floor = self._newest = await self._source.newest_event()
                else:
                    events = await self._source.events_after(self._newest, _BATCH)
                    found = len(events)
                    self._add(events)
            except StoreError:
                pass  # continues when the store is available again
            if found < _BATCH:
                await asyncio.sleep(self._poll_seconds)

    def _add(self, events: list[Event]) -> None:
        if not events:
            return
        self._recent += events
        self._newest = events[-1].id
        dropped = len(self._recent) - _RECENT
        if dropped > 0:
            self._floor = self._recent[dropped - 1].id
            del self._recent[:dropped]
        self._arrived.set()
        self._arrived = asyncio.Event()
