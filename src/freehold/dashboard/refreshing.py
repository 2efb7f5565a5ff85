"""What open pages read again of one store: each value once for all of them, and not too much.

A page that loads itself again shares lists that are the same for every visitor with other such
pages. All that they and the watcher read is measured: if it takes more than a hundredth of the
time for long, the watcher looks less often, so that changes are shown later, and pages show when
they were updated. The first page of a visitor, and the page after an action, read for themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from freehold.clock import monotonic
from freehold.errors import StoreUnavailable

T = TypeVar("T")

#: Of the time of one connection.
_SHARE = 0.01
#: What may be read at once after a quiet time: a change is then shown without delay.
_BURST_SECONDS = 0.5
_LONGEST_REST_SECONDS = 30.0
#: More is forgiven: one slow read must not be followed by many rests.
_MOST_DEBT_SECONDS = _BURST_SECONDS + _LONGEST_REST_SECONDS * _SHARE
#: A shared value is not older.
_OLDEST_SECONDS = 1.0


class Refreshing:
    """``clock``: of durations."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()
        self._shared: dict[str, tuple[float, asyncio.Future[Any]]] = {}
        self._debt = 0.0
        self._paid_at = clock()

    async def measured(self, run: Callable[[], Awaitable[T]]) -> T:
        """One group of statements at a time: many pages use one connection."""
        async with self._turn:
            begin = self._clock()
            try:
                return await run()
            except StoreUnavailable:
                begin = self._clock()  # a store that is away had no work; look soon for its return
                raise
            finally:
                self._pay()
                self._debt = min(self._debt + self._clock() - begin, _MOST_DEBT_SECONDS)

    def _pay(self) -> None:
        now = self._clock()
        self._debt = max(0.0, self._debt - (now - self._paid_at) * _SHARE)
        self._paid_at = now

    @property
    def rest_seconds(self) -> float:
        """How long the watcher should not look, for what was read."""
        self._pay()
        rest = (self._debt - _BURST_SECONDS) / _SHARE
        return max(rest, 0.0)

    async def shared(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        """A value that all visitors of the store may see, read by the first one that needs it."""
        at, found = self._shared.get(name, (0.0, None))
        if found is None or self._clock() - at > _OLDEST_SECONDS:
            found = asyncio.ensure_future(read())
            self._shared[name] = self._clock(), found
        try:
            value: T = await asyncio.shield(found)
        except BaseException:
            if found.done():
                self._shared.pop(name, None)  # an error is not shared with later pages
            raise
        return value

    def forget(self) -> None:
        """Something has changed: values that were read before are not shown any more."""
        self._shared.clear()
