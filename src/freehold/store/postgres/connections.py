"""The connections to one server, shared by all schemas there.

Statements name their schema themselves and leave nothing in a session, so that any connection
serves any schema.
"""

from __future__ import annotations

from freehold.store.database import ServerOptions, SessionOptions
from freehold.store.postgres.async_pool import LoopPools
from freehold.store.postgres.conninfo import conninfo
from freehold.store.postgres.pool import Pool

POOL_SIZE = 16
_DEFAULT_OPTIONS = SessionOptions()


class Connections:
    """Pools for threads and for each event loop; opened as they are needed."""

    def __init__(
        self,
        url: str,
        pool_size: int = POOL_SIZE,
        options: ServerOptions = _DEFAULT_OPTIONS,
    ) -> None:
        self.url = url
        #: Which sessions use these connections: see `session`.
        self.pipelined = options.session == "pipelined"
        self.answer_seconds = options.answer_seconds
        self.conninfo = conninfo(url)
        self.pool = Pool(url, pool_size, answer_seconds=options.answer_seconds)
        self._loop_pools = LoopPools(url, pool_size, answer_seconds=options.answer_seconds)
        self.set_soft_limit = self._loop_pools.set_soft_limit
        self.pool_of_loop = self._loop_pools.current
        # Handlers hold transactions open for as long as they like. With connections of their
        # own they never keep the worker's parts, or each other's enqueues, waiting. Their own
        # statements may take as long as they like.
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
