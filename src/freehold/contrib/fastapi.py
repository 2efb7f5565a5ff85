"""FastAPI and Starlette: a lifespan, and one job as a stream of events.

    web = FastAPI(lifespan=lifespan(queue, worker=True))
    web.mount("/queue", api(queue, identify=...))

FastAPI itself is not imported: its applications and responses are those of Starlette.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

from freehold.app import Freehold
from freehold.contrib.missing_package import missing

try:
    from starlette.responses import StreamingResponse
except ImportError as error:
    raise missing(error, "starlette", "freehold[http]") from None

from freehold.http.events import STREAM
from freehold.http.job_stream import job_messages, read_job
from freehold.http.request_limits import RequestLimits

#: How long a stream lasts.
STREAM_SECONDS = 30.0
WebLifespan: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]


def lifespan(
    app: Freehold, inner: WebLifespan | None = None, *, worker: bool = False, **settings: Any
) -> WebLifespan:
    """A lifespan of a web application around `app.running`, whose arguments it takes.

    ``inner`` is the application's own lifespan, which begins first and ends last; what it yields
    is the state of the application.
    """

    @asynccontextmanager
    async def running(web: Any) -> AsyncIterator[Any]:
        own = _nothing() if inner is None else inner(web)
        async with own as state, app.running(worker=worker, **settings):
            yield state

    return running


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


async def job_events(
    app: Freehold, job_id: int, *, limits: RequestLimits | None = None
) -> StreamingResponse:
    """The response of a route of the application, which has checked that the caller may see this
    job: server-sent events ``job`` and ``end``, as of ``/api/jobs/{id}/events``. Raises
    JobNotFound. A server waits for its open responses when it stops, so a stream ends after half a
    minute; browsers connect again."""
    job = await read_job(app, job_id)
    chosen = limits or RequestLimits(stream_seconds=STREAM_SECONDS)
    messages = job_messages(app, job, chosen, lambda: False)
    return StreamingResponse(messages, media_type=STREAM, headers={"Cache-Control": "no-store"})
