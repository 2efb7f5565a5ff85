"""The connections to one server, shared by all schemas there.

Statements name their schema themselves and leave nothing in a session, so that any connection
serves any schema.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from functools import partial

from freehold.store.postgres.async_pool import AsyncPool
from freehold.store.postgres.pool import Pool, conninfo

POOL_SIZE = 16


class Connections:
    """Pools for threads and for each event loop; opened as they are needed."""

    def __init__(self, url: str, pool_size: int = POOL_SIZE, *, pipelined: bool = True) -> None:
        self.url = url
        #: Which sessions use these connections: see `pipelined_session`.
        self.pipelined = pipelined
        self.conninfo = conninfo(url)
        self.pool = Pool(url, pool_size)
        self._loop_pools = LoopPools(url, pool_size, internal=True)
        self.set_soft_limit = self._loop_pools.set_soft_limit
        self.pool_of_loop = self._loop_pools.current
        # Handlers hold transactions open for as long as they like. With connections of their
        # own they never keep the worker's parts, or each other's enqueues, waiting.
        self.handler_pool = Pool(url, pool_size, internal=False)
        self._handler_loop_pools = LoopPools(url, pool_size, internal=False)
        self.handler_pool_of_loop = self._handler_loop_pools.current

    def close(self) -> None:
        self.pool.close()
        self.handler_pool.close()
        self._loop_pools.close_ended()
        self._handler_loop_pools.close_ended()

    def close_current_loop(self) -> None:
        self._loop_pools.close_current()
        self._handler_loop_pools.close_current()


class LoopPools:
    """One pool for each event loop: asyncio's connections belong to the loop that opened them."""

    def __init__(self, url: str, size: int, *, internal: bool) -> None:
        self._new = partial(AsyncPool, url, size, internal=internal)
        self._soft_limit: int | None = None
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool]
        self._pools = weakref.WeakKeyDictionary()
        #: The loop of the last call and its pool: nearly always those of the next call, too.
        self._latest: tuple[Callable[[], object], AsyncPool | None] = (lambda: None, None)

    def current(self) -> AsyncPool:
        """The pool of the running loop."""
        loop = asyncio.get_running_loop()
        latest, pool = self._latest
        if pool is not None and latest() is loop:
            return pool
        pool = self._pools.get(loop)
        if pool is None:
            self.close_ended()
            pool = self._pools[loop] = self._new(soft_limit=self._soft_limit)
        self._latest = weakref.ref(loop), pool
        return pool

    def set_soft_limit(self, soft_limit: int) -> None:
        """For the pools of later loops: see `AsyncPool`."""
        self._soft_limit = soft_limit

    def close_current(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            self._latest = (lambda: None, None)
            pool.close()

    def close_ended(self) -> None:
        """A loop that ended without aclose() left its connections open."""
        for known in self._pools.keyrefs():  # a list: loops of other threads come and go meanwhile
            loop = known()
            if loop is not None and loop.is_closed():
                pool = self._pools.pop(loop, None)
                if pool is not None:
                    pool.close()
