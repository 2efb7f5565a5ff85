"""The connections of one server, shared by all schemas that live there.

Statements name their schema themselves and leave nothing in a session, so that it does not
matter whose connection was whose before.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from functools import partial

from freehold.store.postgres.pool import AsyncPool, Pool, conninfo

POOL_SIZE = 16


class Connections:
    """Pools for threads and for each event loop; opened as they are needed."""

    def __init__(self, url: str, pool_size: int = POOL_SIZE) -> None:
        self.url = url
        self.conninfo = conninfo(url)
        self.pool = Pool(url, pool_size)
        self._of_loops = PoolsOfLoops(url, pool_size, ours=True)
        self.use_few = self._of_loops.use_few
        self.pool_of_loop = self._of_loops.here
        # Handlers hold transactions open for as long as they like. With connections of their
        # own they never keep the worker's parts, or each other's enqueues, waiting.
        self.handler_pool = Pool(url, pool_size, ours=False)
        self._handlers_of_loops = PoolsOfLoops(url, pool_size, ours=False)
        self.handler_pool_of_loop = self._handlers_of_loops.here

    def close(self) -> None:
        self.pool.close()
        self.handler_pool.close()
        self._of_loops.forget_ended()
        self._handlers_of_loops.forget_ended()

    def close_here(self) -> None:
        """Those of the running loop."""
        self._of_loops.close_here()
        self._handlers_of_loops.close_here()


class PoolsOfLoops:
    """Asyncio's connections belong to the loop that made them."""

    def __init__(self, url: str, size: int, *, ours: bool) -> None:
        self._new = partial(AsyncPool, url, size, ours=ours)
        self._few: int | None = None
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool]
        self._pools = weakref.WeakKeyDictionary()
        #: The loop that asked last, and its pool: nearly always the one that asks next.
        self._latest: tuple[Callable[[], object], AsyncPool | None] = (lambda: None, None)

    def here(self) -> AsyncPool:
        loop = asyncio.get_running_loop()
        latest, pool = self._latest
        if pool is not None and latest() is loop:
            return pool
        pool = self._pools.get(loop)
        if pool is None:
            self.forget_ended()
            pool = self._pools[loop] = self._new(few=self._few)
        self._latest = weakref.ref(loop), pool
        return pool

    def use_few(self, few: int) -> None:
        """From now on, by loops that come: see `AsyncPool`."""
        self._few = few

    def close_here(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            self._latest = (lambda: None, None)
            pool.close()

    def forget_ended(self) -> None:
        """A loop that ended without aclose() left its connections open."""
        for known in self._pools.keyrefs():  # a list: loops of other threads come and go meanwhile
            loop = known()
            if loop is not None and loop.is_closed():
                pool = self._pools.pop(loop, None)
                if pool is not None:
                    pool.close()
