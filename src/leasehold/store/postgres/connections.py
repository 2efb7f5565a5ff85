"""The connections of one server, shared by all schemas that live there.

Statements name their schema themselves and leave nothing in a session, so that it does not
matter whose connection was whose before.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TypeAlias

from leasehold.store.postgres.pool import AsyncPool, Pool, conninfo

POOL_SIZE = 16
_LoopPools: TypeAlias = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool]


class Connections:
    """Pools for threads and for each event loop; opened as they are needed."""

    def __init__(self, url: str, pool_size: int = POOL_SIZE) -> None:
        self.url = url
        self.conninfo = conninfo(url)
        self._size = pool_size
        self.pool = Pool(url, pool_size)
        self._of_loops: _LoopPools = weakref.WeakKeyDictionary()
        # Handlers hold transactions open for as long as they like. With connections of their
        # own they never keep the worker's parts, or each other's enqueues, waiting.
        self.handler_pool = Pool(url, pool_size, ours=False)
        self._handlers_of_loops: _LoopPools = weakref.WeakKeyDictionary()

    def pool_of_loop(self) -> AsyncPool:
        """Asyncio's connections belong to the loop that made them."""
        return self._pool_of_loop(self._of_loops, ours=True)

    def handler_pool_of_loop(self) -> AsyncPool:
        return self._pool_of_loop(self._handlers_of_loops, ours=False)

    def _pool_of_loop(self, pools: _LoopPools, *, ours: bool) -> AsyncPool:
        loop = asyncio.get_running_loop()
        pool = pools.get(loop)
        if pool is None:
            _forget_ended_loops(pools)
            pool = pools[loop] = AsyncPool(self.url, self._size, ours=ours)
        return pool

    def close(self) -> None:
        self.pool.close()
        self.handler_pool.close()
        for pools in (self._of_loops, self._handlers_of_loops):
            _forget_ended_loops(pools)

    async def aclose(self) -> None:
        loop = asyncio.get_running_loop()
        for pools in (self._of_loops, self._handlers_of_loops):
            if loop in pools:
                await pools.pop(loop).close()


def _forget_ended_loops(pools: _LoopPools) -> None:
    """A loop that ended without aclose() left its connections open."""
    for loop in [loop for loop in pools if loop.is_closed()]:
        pools.pop(loop).abandon()
