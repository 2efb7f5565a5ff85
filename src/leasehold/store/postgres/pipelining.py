"""Several statements as one transaction in one round trip, sent as one piece.

Statements of a pipeline that are not followed by a Sync are one transaction to the server, without
BEGIN and COMMIT. A process that was frozen between two of them would keep the locks of the
first, and nobody could tell the server to let go of it: no timeout runs before the Sync. So
nothing is sent until all is there.

psycopg sends each statement when it is executed, and knows no other way: its own sending is held
back here, and caught up on in one go. Where a later version calls that differently everything
works as before, but a test fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from psycopg import AsyncConnection, AsyncPipeline, Connection, Pipeline


@contextmanager
def at_once(connection: Connection[Any]) -> Iterator[None]:
    with connection.pipeline() as pipeline:
        _hold_back(pipeline)
        yield
        _let_go(pipeline)


@asynccontextmanager
async def aat_once(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    async with connection.pipeline() as pipeline:
        _hold_back(pipeline)
        yield
        _let_go(pipeline)


def _hold_back(pipeline: Pipeline | AsyncPipeline) -> None:
    vars(pipeline)["_communicate_gen"] = _nothing


def _nothing() -> Generator[Any, Any, None]:
    yield from ()


def _let_go(pipeline: Pipeline | AsyncPipeline) -> None:
    del vars(pipeline)["_communicate_gen"]
    while pipeline.command_queue:
        pipeline.command_queue.popleft()()
    pipeline.pgconn.pipeline_sync()  # sends all of it
    pipeline.result_queue.append(None)
